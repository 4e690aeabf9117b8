#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/torch/pickle/file.hpp"

/// Values of Python's as those that they become here.
namespace hortator::accelerator {

/// Of a number, a truth value, or a tensor of one element; nothing for all else.
std::optional<double> to_real(const formats::PickleFile& file, const formats::PickleValue& value);
/// The same, without a fraction.
std::optional<std::int64_t> to_whole(const formats::PickleFile& file, const formats::PickleValue& value);
/// A tensor, or a number as one without dimensions; undefined for all else.
at::Tensor to_tensor(const formats::PickleFile& file, const formats::PickleValue& value);

/// The items of a list or a tuple; null for all else.
const formats::PickleValue::List* items_of(const formats::PickleValue& value);

/// What a dict has under a number; null where there is nothing.
const formats::PickleValue* find(const formats::PickleValue& dict, std::int64_t key);

}  // namespace hortator::accelerator
