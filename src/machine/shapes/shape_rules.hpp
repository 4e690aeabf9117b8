#pragma once

#include <ATen/core/ivalue.h>

#include <string_view>
#include <vector>

namespace hortator::machine {

/// Makes an operator's results from its arguments, without their values.
using ShapeRule = std::vector<c10::IValue> (*)(c10::ArrayRef<c10::IValue> arguments);

/// The rule of an operator for which LibTorch has none that C++ can call: its results as the CPU's kernel makes them.
/// Null where there is none. Names are as "aten::convolution".
ShapeRule shape_rule(std::string_view name);

}  // namespace hortator::machine
