#include "simulation/training/loss_agreement.hpp"

#include <array>
#include <hortator/error.hpp>
#include <span>

#include "mpi/collectives.hpp"

namespace hortator::simulation {
namespace {

enum Sum { failures, losses, weights_of_losses, weights, samples, nonfinite, calls, squares, count };

// Whole numbers, and exact: up to 127 * 127 * ranks * ranks.
bool are_equal(const std::array<double, count>& sums, double ranks) {
  return ranks * sums[squares] == sums[calls] * sums[calls];
}

}  // namespace

CommonLoss agree_on_loss(const mpi::Communicator& comm, const mpi::LocalOutcome& outcome, const LocalLoss& mine) {
  const auto call = static_cast<double>(mine.call);
  const double asked = mine.loss ? mine.weight : 0;
  std::array<double, count> sums = {
      outcome.failed ? 1.0 : 0.0,        asked == 0 ? 0 : asked * *mine.loss, asked, mine.weight,
      static_cast<double>(mine.samples), mine.is_finite ? 0.0 : 1.0,          call,  call * call};
  mpi::all_reduce(comm, std::span<double>(sums), mpi::Op::sum);
  if (sums[failures] > 0) mpi::agree(comm, outcome);  // throws
  const auto ranks = static_cast<double>(comm.size());
  if (!are_equal(sums, ranks)) {
    throw UsageError({.what = "The ranks have called different functions, or passed different models",
                      .why = "hortator_train and hortator_evaluate are collective",
                      .hint = "call the same function with the same model on all ranks of the run"});
  }
  CommonLoss common{.samples = static_cast<std::int64_t>(sums[samples]), .is_finite = sums[nonfinite] == 0};
  if (sums[weights_of_losses] > 0) common.loss = sums[losses] / sums[weights_of_losses];
  if (sums[weights] > 0) common.factor = mine.weight * ranks / sums[weights];
  return common;
}

}  // namespace hortator::simulation
