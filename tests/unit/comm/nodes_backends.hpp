#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/decorators/checked_communicator.hpp"
#include "comm/shm/communicator.hpp"
#include "integration/scale/traffic.hpp"

/// The node back end where ranks are on several nodes, as far as MPI says, with one rank on the last if they are odd.
namespace hortator::test {

inline const std::vector<std::string>& backends() {
  static const std::vector<std::string> names = {"nodes of one", "nodes of two", "nodes of two in small blocks",
                                                 "nodes of two checked"};
  return names;
}

inline std::unique_ptr<comm::Communicator> make_backend(const std::string& name) {
  scale::pretend_nodes_of(name == "nodes of one" ? 1 : 2);
  const bool in_small_blocks = name == "nodes of two in small blocks";
  const auto staging = in_small_blocks ? std::size_t{512} : comm::NodeCommunicator::default_staging;
  auto plain = std::make_unique<comm::NodeCommunicator>(mpi::Communicator::world(), staging);
  if (name != "nodes of two checked") return plain;
  return std::make_unique<comm::CheckedCommunicator>(std::move(plain), mpi::Communicator::world());
}

}  // namespace hortator::test
