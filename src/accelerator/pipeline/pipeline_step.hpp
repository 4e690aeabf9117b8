#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/detail/micro_batches.hpp>
#include <hortator/parallel/pipeline.hpp>

#include "step/model/model_core.hpp"

namespace hortator::accelerator {

class Training;

/// Forward and backward of a batch in micro-batches, through all stages, as one Training::backward(). Returns the loss
/// of the whole batch, a mean, on all stages. @collective
at::Tensor pipeline_step(Training& training, step::ModelCore& model, const detail::MicroBatches& batches,
                         const PipelineStepOptions& options);

/// Forward of a batch in micro-batches, without gradients. Returns the results of all micro-batches, joined along
/// dimension 0, on all stages. @collective
at::Tensor pipeline_forward(Training& training, step::ModelCore& model, const detail::MicroBatches& batches,
                            const PipelineStepOptions& options);

}  // namespace hortator::accelerator
