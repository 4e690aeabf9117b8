#include "simulation/loss_agreement.hpp"

#include <array>
#include <span>

#include "mpi/collectives.hpp"

namespace hortator::simulation {

double agree_on_loss(const mpi::Communicator& comm, const mpi::LocalOutcome& outcome, std::optional<double> loss) {
  std::array<double, 3> sums = {outcome.failed ? 1.0 : 0.0, loss.value_or(0), loss ? 1.0 : 0.0};
  mpi::all_reduce(comm, std::span<double>(sums), MPI_SUM);
  if (sums[0] > 0) mpi::agree(comm, outcome);  // throws
  return sums[2] > 0 ? sums[1] / sums[2] : 0;
}

}  // namespace hortator::simulation
