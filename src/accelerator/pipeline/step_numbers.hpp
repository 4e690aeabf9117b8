#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <hortator/training/state_dict.hpp>

#include "parallel/pipeline/stage_ranks.hpp"

namespace hortator::accelerator {

/// Random numbers of a pipeline's step: they depend on its micro-batches and layers, so that any number of stages draws
/// the same. Afterwards the generators have drawn one number, or none if `keys` gives what those of a micro-batch
/// depend on.
class StepNumbers {
 public:
  using Keys = std::function<std::uint64_t(int micro_batch)>;

  /// `stages` may be null, and `keys` empty. @collective over the pipeline
  StepNumbers(c10::Device device, const parallel::StageRanks* stages, Keys keys);
  ~StepNumbers();
  StepNumbers(const StepNumbers&) = delete;
  StepNumbers& operator=(const StepNumbers&) = delete;

  /// Seeds the generators for what a micro-batch draws at a position: StagePass::Border::seed.
  void seed(int micro_batch, std::int64_t position) const;

 private:
  c10::Device device_;
  Keys keys_;
  StateDict before_;
};

}  // namespace hortator::accelerator
