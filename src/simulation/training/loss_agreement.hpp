#pragma once

#include <cstdint>
#include <optional>

#include "mpi/agree.hpp"

namespace hortator::simulation {

/// What this rank brings to a step, or to an evaluation.
struct LocalLoss {
  std::optional<double> loss = {};  ///< if the caller asks for it
  std::int64_t samples = 0;
  double weight = 0;      ///< of this rank's loss, relative to those of others
  bool is_finite = true;  ///< the loss
  std::int64_t call = 0;  ///< from 0 to 127: the same on all ranks that call one function of one model
};

/// What all ranks bring together.
struct CommonLoss {
  std::optional<double> loss = {};  ///< the weighted mean of the ranks that ask for it; nothing if none does
  std::int64_t samples = 0;
  bool is_finite = true;
  double factor = 1;  ///< of this rank's loss: the mean over the ranks then is the weighted mean
};

/// Agrees that this rank's part of a step has succeeded: on an error of any rank, all throw it. Throws UsageError on
/// all ranks if they have made different calls. One reduction of 64 bytes where all is well. @collective
CommonLoss agree_on_loss(const mpi::Communicator& comm, const mpi::LocalOutcome& outcome, const LocalLoss& mine);

}  // namespace hortator::simulation
