#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "accelerator/prepared/prepared.hpp"
#include "mpi/communicator.hpp"

namespace hortator::accelerator {

/// A copy, in the host's memory, of what this rank has of models, optimizers, schedules, further parts of checkpoints
/// and registered objects. Not of loaders and random numbers.
class MemorySnapshot {
 public:
  /// Local.
  explicit MemorySnapshot(const Prepared& prepared);
  /// Whether nothing was prepared or registered since.
  bool has_all(const Prepared& prepared) const;
  /// Puts the copy back, any number of times. What was prepared since stays as it is, and what is prepared no more is
  /// left out. `host`: all ranks. @collective
  void restore(Prepared& prepared, const mpi::Communicator& host) const;

 private:
  struct OptimizerCopy {
    std::weak_ptr<step::OptimizerCore> optimizer;
    StateDict state;
  };

  std::vector<std::vector<at::Tensor>> models_;  ///< copies of what this rank has of each, in their order
  std::vector<OptimizerCopy> optimizers_;        ///< an optimizer may be replaced by another one
  std::vector<StateDict> schedules_;
  std::vector<StateDict> objects_;
  std::vector<std::function<void()>> parts_;
};

}  // namespace hortator::accelerator
