#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/torch/pickle/source.hpp"

/// Conversions of Python values.
namespace hortator::accelerator {

/// Converts a number, a bool or a tensor of one element; nothing for any other value.
std::optional<double> to_real(const formats::PickleSource& file, const formats::PickleValue& value);
/// The same for whole numbers; nothing if there is a fraction.
std::optional<std::int64_t> to_whole(const formats::PickleSource& file, const formats::PickleValue& value);
/// Converts a tensor, or a number to one without dimensions; undefined for any other value.
at::Tensor to_tensor(const formats::PickleSource& file, const formats::PickleValue& value);

/// The items of a list or a tuple; null for any other value.
const formats::PickleValue::List* items_of(const formats::PickleValue& value);

/// The value that a dict has under a number; null if it has none.
const formats::PickleValue* find(const formats::PickleValue& dict, std::int64_t key);

}  // namespace hortator::accelerator
