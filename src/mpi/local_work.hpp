#pragma once

#include <concepts>

#include "mpi/agree.hpp"

namespace hortator::mpi {

/// Work of one rank between collectives that it must not leave out, because others would wait for it. After an error
/// the rest of the work is skipped; agree() then throws on all ranks.
class LocalWork {
 public:
  template <std::invocable Work>
  void run(Work&& work) {
    if (outcome_.failed) return;
    try {
      work();
    } catch (const std::exception& error) {
      outcome_ = LocalOutcome::of(error);
    }
  }
  /// Returns if no rank's work has failed, otherwise throws on all. @collective
  void agree(const Communicator& comm) const { mpi::agree(comm, outcome_); }

 private:
  LocalOutcome outcome_;
};

}  // namespace hortator::mpi
