#pragma once

#ifdef HORTATOR_TEST_NCCL  // the same suites, over the back end for devices and stand-ins for these
#include "nccl/backends.hpp"
#elif defined(HORTATOR_TEST_NCCL_GPU)  // the same suites, over the real ones
#include "nccl/gpu_backends.hpp"
#elif defined(HORTATOR_TEST_NODES)  // the same suites, over several nodes
#include "nodes_backends.hpp"
#else

#include <memory>
#include <string>
#include <vector>

#include "comm/decorators/checked_communicator.hpp"
#include "comm/decorators/staged_communicator.hpp"
#include "comm/decorators/watched_communicator.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/self/self_communicator.hpp"
#include "comm/shm/communicator.hpp"

/// Every back end that must keep the communicator's contract, by name.
namespace hortator::test {

inline const std::vector<std::string>& backends() {
  static const std::vector<std::string> names = {"self",        "mpi",  "mpi in small pieces",  "mpi checked",
                                                 "mpi watched", "node", "node in small blocks", "node checked",
                                                 "staged"};
  return names;
}

inline std::unique_ptr<comm::Communicator> make_backend(const std::string& name) {
  if (name == "self") return std::make_unique<comm::SelfCommunicator>(at::kCPU);
  if (name == "staged") {
    return std::make_unique<comm::StagedCommunicator>(
        std::make_unique<comm::MpiCommunicator>(mpi::Communicator::world()), at::kCPU);
  }
  if (name == "node") return std::make_unique<comm::NodeCommunicator>(mpi::Communicator::world());
  if (name == "node in small blocks") {
    return std::make_unique<comm::NodeCommunicator>(mpi::Communicator::world(), 512);
  }
  if (name == "node checked") {
    return std::make_unique<comm::CheckedCommunicator>(
        std::make_unique<comm::NodeCommunicator>(mpi::Communicator::world()), mpi::Communicator::world());
  }
  // 5 does not divide the sizes that the tests use: the last piece is a short one.
  const std::int64_t piece = name == "mpi in small pieces" ? 5 : comm::MpiCommunicator::default_piece;
  auto plain = std::make_unique<comm::MpiCommunicator>(mpi::Communicator::world(), piece);
  if (name == "mpi watched") {
    const int size = plain->size();
    return std::make_unique<comm::WatchedCommunicator>(std::move(plain), activity::Membership(1, 1, size));
  }
  if (name != "mpi checked") return plain;
  return std::make_unique<comm::CheckedCommunicator>(std::move(plain), mpi::Communicator::world());
}

}  // namespace hortator::test

#endif
