#pragma once

#include <functional>
#include <vector>

#include "accelerator/training/training.hpp"

namespace hortator::accelerator {

/// A copy, in the host's memory, of what this rank has of models, optimizers, schedules, further parts of checkpoints
/// and registered objects. Not of loaders and random numbers.
class MemorySnapshot {
 public:
  /// Local.
  explicit MemorySnapshot(const Training& training);
  /// Puts the copy back, any number of times. @collective under ZeRO
  void restore(Training& training) const;

 private:
  std::vector<std::vector<at::Tensor>> models_;  ///< copies of what this rank has of each
  std::vector<StateDict> optimizers_;
  std::vector<StateDict> schedules_;
  std::vector<StateDict> objects_;
  std::vector<std::function<void()>> parts_;
};

}  // namespace hortator::accelerator
