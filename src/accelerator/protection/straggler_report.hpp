#pragma once

#include <hortator/training/stragglers.hpp>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"
#include "parallel/pace/step_times.hpp"

namespace hortator::accelerator {

/// Throws UsageError for options that cannot be met.
void check(const StragglerOptions& options);

/// Reports slow ranks to the user.
class StragglerReport {
 public:
  /// `host`: all ranks, which must average their gradients together. @collective
  StragglerReport(const StragglerOptions& options, const mpi::Communicator& host);

  parallel::StepTimes& times() { return times_; }
  /// Calls the user's function for ranks that have become slow. The same on all ranks.
  void announce();

 private:
  StragglerOptions options_;
  bool is_first_;
  std::vector<std::string> hosts_;
  parallel::StepTimes times_;
  parallel::StragglerWatch watch_;
};

}  // namespace hortator::accelerator
