#include "accelerator/weights/floating_type.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "paging/stores/cast_store.hpp"

namespace hortator::accelerator {

void require_floating(const std::optional<at::ScalarType>& chosen) {
  if (!chosen || paging::holds_weights(*chosen)) return;
  throw UsageError({.what = text::concat("Weights were to become ", formats::type_name(*chosen)),
                    .why = "only floating-point tensors are converted, and only to such types",
                    .hint = "take at::kFloat, at::kBFloat16 or at::kHalf for .dtype"});
}

void require_fits(const std::string& name, const at::Tensor& values, at::ScalarType type) {
  if (values.scalar_type() == type || !values.is_floating_point() || paging::fits(values, type)) return;
  throw UsageError(
      {.what = text::concat("The tensor ", text::quote(name), " does not fit into ", formats::type_name(type)),
       .why = "some of its numbers are larger than the largest of that type",
       .hint = "choose a type with a larger range, such as at::kBFloat16, for .dtype"});
}

}  // namespace hortator::accelerator
