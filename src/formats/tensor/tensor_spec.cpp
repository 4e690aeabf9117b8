#include "formats/tensor/tensor_spec.hpp"

#include <c10/core/ScalarType.h>

#include <functional>
#include <numeric>

#include "core/text/text.hpp"

namespace hortator::formats {

std::int64_t TensorSpec::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

TensorSpec spec_of(const at::Tensor& tensor) {
  return {.type = tensor.scalar_type(), .shape = {tensor.sizes().begin(), tensor.sizes().end()}};
}

std::string to_string(const TensorSpec& spec) {
  const auto name = type_name(spec.type);
  return text::concat(name.empty() ? c10::toString(spec.type) : name, " [", text::join(spec.shape), "]");
}

}  // namespace hortator::formats
