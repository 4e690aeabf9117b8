#pragma once

#include <concepts>
#include <exception>

#include "comm/abandoned.hpp"
#include "mpi/agree.hpp"
#include "parallel/tensor/tensor_ranks.hpp"

namespace hortator::parallel {

/// Runs work in which ranks exchange parts, and which may fail on one of them, for example for lack of memory. That
/// rank calls `abandon`, so that the others stop waiting for it, and all ranks of `host` throw its error. Where
/// `abandon` returns false, since some may still wait, it throws alone: its error ends the job. @collective
template <std::predicate Abandon, std::invocable Work>
void exchange_together(const mpi::Communicator& host, const Abandon& abandon, const Work& work) {
  mpi::LocalOutcome cause, consequence;
  try {
    work();
  } catch (const std::exception& error) {
    if (!abandon()) throw;
    (comm::is_abandoned(std::current_exception()) ? consequence : cause) = mpi::LocalOutcome::of(error);
  }
  mpi::agree(host, cause);
  mpi::agree(host, consequence);
}

/// The same over ranks that are among those of `host`. @collective over `host`
template <std::invocable Work>
void exchange_together(const mpi::Communicator& host, const TensorRanks& ranks, const Work& work) {
  exchange_together(
      host, [&] { return ranks.abandon("a rank cannot join the parts of divided parameters"); }, work);
}

}  // namespace hortator::parallel
