#include "accelerator/interop/accelerate/python_values.hpp"

#include <ATen/ops/scalar_tensor.h>

#include <cmath>

#include "formats/tensor/stored_rows.hpp"

namespace hortator::accelerator {

using formats::PickledTensor;
using formats::PickleSource;
using formats::PickleValue;

std::optional<double> to_real(const PickleSource& file, const PickleValue& value) {
  if (const auto* real = std::get_if<double>(&value.content)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(&value.content)) return static_cast<double>(*whole);
  if (const auto* truth = std::get_if<bool>(&value.content)) return *truth ? 1 : 0;
  const auto* tensor = std::get_if<PickledTensor>(&value.content);
  if (tensor == nullptr ||
      formats::byte_count(tensor->spec) != static_cast<std::int64_t>(c10::elementSize(tensor->spec.type)))
    return std::nullopt;
  return file.get(*tensor).item<double>();
}

std::optional<std::int64_t> to_whole(const PickleSource& file, const PickleValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.content)) return *whole;
  const auto real = to_real(file, value);
  constexpr double beyond = 0x1p63;
  if (!real || std::trunc(*real) != *real || *real < -beyond || *real >= beyond) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

at::Tensor to_tensor(const PickleSource& file, const PickleValue& value) {
  if (const auto* tensor = std::get_if<PickledTensor>(&value.content)) return file.get(*tensor);
  if (const auto number = to_real(file, value)) return at::scalar_tensor(*number);
  return {};
}

const PickleValue::List* items_of(const PickleValue& value) {
  if (const auto* tuple = std::get_if<PickleValue::Tuple>(&value.content)) return &tuple->items;
  return std::get_if<PickleValue::List>(&value.content);
}

const PickleValue* find(const PickleValue& dict, std::int64_t key) {
  const auto* items = std::get_if<PickleValue::Dict>(&dict.content);
  if (items == nullptr) return nullptr;
  for (const auto& [name, value] : *items) {
    const auto* number = std::get_if<std::int64_t>(&name.content);
    if (number != nullptr && *number == key) return &value;
  }
  return nullptr;
}

}  // namespace hortator::accelerator
