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

}  // namespace hortator::accelerator
