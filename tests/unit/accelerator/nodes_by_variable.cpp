// A whole test program on several nodes, as far as MPI says: HORTATOR_TEST_RANKS_A_NODE=2.
#include <cstdlib>

#include "integration/scale/traffic.hpp"

namespace {

[[maybe_unused]] const bool pretended = [] {
  const auto* ranks = std::getenv("HORTATOR_TEST_RANKS_A_NODE");
  if (ranks != nullptr) hortator::scale::pretend_nodes_of(std::atoi(ranks));
  return true;
}();

}  // namespace
