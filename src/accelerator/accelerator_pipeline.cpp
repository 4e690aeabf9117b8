#include <hortator/accelerator.hpp>

#include <ATen/ops/full.h>

#include "accelerator/pipeline/pipeline_step.hpp"
#include "accelerator/training/training.hpp"
#include "core/call_site.hpp"
#include "core/text/text.hpp"

namespace hortator {

std::int64_t detail::rows_of(const std::vector<Leaf>& leaves) {
  std::optional<std::int64_t> rows;
  for (const auto& [path, tensor] : leaves) {
    if (!tensor->defined()) continue;
    if (tensor->dim() > 0 && tensor->size(0) == rows.value_or(tensor->size(0))) {
      rows = tensor->size(0);
      continue;
    }
    throw UsageError({.what = text::concat("The tensor batch", path, " of a pipeline has the shape [",
                                           text::join(tensor->sizes()), "]"),
                      .why = text::concat("batches are cut along dimension 0, which has ", rows.value_or(0),
                                          " rows in other tensors"),
                      .hint = "give all tensors of the batch the same number of rows"});
  }
  return rows.value_or(0);
}

at::Tensor detail::count_tensor(double count) { return at::full({}, count, at::kDouble); }

at::Tensor Accelerator::run_pipeline(const ModelBase& model, const detail::MicroBatches& batches,
                                     const PipelineStepOptions& options) {
  const CallSite site(__builtin_return_address(0));
  return accelerator::pipeline_step(*training_, model.core(), batches, options);
}

at::Tensor Accelerator::run_pipeline_forward(const ModelBase& model, const detail::MicroBatches& batches,
                                             const PipelineStepOptions& options) {
  return accelerator::pipeline_forward(*training_, model.core(), batches, options);
}

}  // namespace hortator
