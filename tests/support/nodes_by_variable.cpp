// Makes MPI report several nodes to a whole test program: HORTATOR_TEST_RANKS_A_NODE=2 gives two ranks per node, 0 or
// no value those of MPI. Each case begins with these nodes, whatever the one before it has set.
#include <cstdlib>

#include "integration/scale/traffic.hpp"

// Called by the main function of tests (mpi_main.cpp) where it is linked.
extern "C" void hortator_test_before_case() {
  const auto* ranks = std::getenv("HORTATOR_TEST_RANKS_A_NODE");
  hortator::scale::pretend_nodes_of(ranks == nullptr ? 0 : std::atoi(ranks));
}
