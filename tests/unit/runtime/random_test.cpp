#include <cstdlib>

#include <ATen/ATen.h>

#include <hortator/error.hpp>
#include <hortator/state.hpp>
#include <hortator/training/random.hpp>

#include "mpi/collectives.hpp"
#include "runtime/world.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

double drawn(const State& state, std::uint64_t seed, bool device_specific, int rank) {
  set_seed(seed, {.device_specific = device_specific});
  return mpi::broadcast(state.world().comm(), at::rand({1}, at::kDouble).item<double>(), rank);
}

}  // namespace

TEST_CASE("the same seed draws the same numbers on all ranks") {
  const State state;
  for (int rank = 0; rank < state.num_processes(); ++rank) {
    CHECK(drawn(state, 7, false, rank) == drawn(state, 7, false, 0));
    CHECK(drawn(state, 8, false, rank) != drawn(state, 7, false, rank));
  }
}

TEST_CASE("device_specific adds the rank") {
  const State state;
  for (int rank = 0; rank < state.num_processes(); ++rank) {
    CHECK(drawn(state, 7, true, rank) == drawn(state, 7 + static_cast<std::uint64_t>(rank), false, 0));
  }
}

TEST_CASE("deterministic forbids what is not") {
  set_seed(1);
  CHECK_FALSE(at::globalContext().deterministicAlgorithms());
  set_seed(1, {.deterministic = true});
  CHECK(at::globalContext().deterministicAlgorithms());
  CHECK_FALSE(at::globalContext().deterministicAlgorithmsWarnOnly());
  CHECK(std::getenv("CUBLAS_WORKSPACE_CONFIG") != nullptr);
  at::globalContext().setDeterministicAlgorithms(false, false);
}
