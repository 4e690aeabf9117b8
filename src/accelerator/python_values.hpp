#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "io/pickle_file.hpp"

/// Values of Python's as those that they become here.
namespace hortator::accelerator {

/// Of a number, a truth value, or a tensor of one element; nothing for all else.
std::optional<double> to_real(const io::PickleFile& file, const io::PickleValue& value);
/// The same, without a fraction.
std::optional<std::int64_t> to_whole(const io::PickleFile& file, const io::PickleValue& value);
/// A tensor, or a number as one without dimensions; undefined for all else.
at::Tensor to_tensor(const io::PickleFile& file, const io::PickleValue& value);

/// The items of a list or a tuple; null for all else.
const io::PickleValue::List* items_of(const io::PickleValue& value);

/// What a dict has under a number; null where there is nothing.
const io::PickleValue* find(const io::PickleValue& dict, std::int64_t key);

}  // namespace hortator::accelerator
