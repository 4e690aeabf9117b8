#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::formats {

/// Type and shape of a tensor.
struct TensorSpec {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape = {};

  std::int64_t elements() const;
  std::int64_t element_bytes() const { return static_cast<std::int64_t>(c10::elementSize(type)); }
  std::int64_t bytes() const { return elements() * element_bytes(); }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

TensorSpec spec_of(const at::Tensor& tensor);

/// "float32 [3, 4]"
std::string to_string(const TensorSpec& spec);

/// The name of the type in Python; empty for types that cannot be stored.
std::string_view type_name(at::ScalarType type);
/// The inverse of type_name().
std::optional<at::ScalarType> type_named(std::string_view name);

}  // namespace hortator::formats
