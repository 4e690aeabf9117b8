#pragma once

#include <hortator/accelerator.hpp>

namespace hortator {

template <Module M, typename Batch, typename LossFunction>
at::Tensor Accelerator::pipeline_step(Model<M>& model, const Batch& batch, LossFunction&& loss_function,
                                      const PipelineStepOptions& options) {
  auto whole = batch;
  using Loss = decltype(detail::call_with_part(loss_function, model, whole));
  return run_pipeline(model,
                      {.rows = detail::rows_of(detail::batch_leaves(whole)),
                       .has_counts = !std::same_as<Loss, at::Tensor>,
                       .compute =
                           [&](std::int64_t begin, std::int64_t end) {
                             auto part = detail::rows_of(whole, begin, end);
                             return detail::micro_loss(detail::call_with_part(loss_function, model, part));
                           }},
                      options);
}

template <Module M, typename Batch, typename Function>
at::Tensor Accelerator::pipeline_forward(Model<M>& model, const Batch& batch, Function&& function,
                                         const PipelineStepOptions& options) {
  auto whole = batch;
  return run_pipeline_forward(model,
                              {.rows = detail::rows_of(detail::batch_leaves(whole)),
                               .compute =
                                   [&](std::int64_t begin, std::int64_t end) {
                                     auto part = detail::rows_of(whole, begin, end);
                                     return detail::MicroLoss{.loss = detail::call_with_part(function, model, part)};
                                   }},
                              options);
}

}  // namespace hortator
