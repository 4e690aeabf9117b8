#include "simulation/calls/local_outcome.hpp"

#include "runtime/ending/failure.hpp"

namespace hortator::simulation {

mpi::LocalOutcome current_outcome() {
  constexpr int usage_exit_code = 2;
  auto failure = runtime::describe(std::current_exception());
  return {.failed = true, .problem = std::move(failure.problem), .is_usage = failure.exit_code == usage_exit_code};
}

}  // namespace hortator::simulation
