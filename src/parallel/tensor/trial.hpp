#pragma once

#include <c10/core/Storage.h>

#include <vector>

namespace hortator::parallel {

/// Thrown where a trial of a plan (TensorRanks::of_trial) would exchange parts. Not a std::exception, so that a
/// module's own code does not catch it.
struct TrialFailure {
  std::vector<c10::Storage> whole_operands = {};  ///< whole tensors beside the divided ones, if an operator had no rule
};

}  // namespace hortator::parallel
