#pragma once

#include <hortator/parallel/data_parallel.hpp>
#include <memory>

namespace hortator::accelerator {

class Training;

/// Averages the gradients of the model that is prepared next by ddp.power_sgd, and saves its state in checkpoints; null
/// if ddp.comm_hook is another one.
std::shared_ptr<const BucketHook> low_rank_average(Training& training);

}  // namespace hortator::accelerator
