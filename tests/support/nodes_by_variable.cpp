// Makes MPI report several nodes to a whole test program: HORTATOR_TEST_RANKS_A_NODE=2 gives two ranks per node.
#include <cstdlib>

#include "integration/scale/traffic.hpp"

namespace {

[[maybe_unused]] const bool pretended = [] {
  const auto* ranks = std::getenv("HORTATOR_TEST_RANKS_A_NODE");
  if (ranks != nullptr) hortator::scale::pretend_nodes_of(std::atoi(ranks));
  return true;
}();

}  // namespace
