#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <hortator/error.hpp>
#include <string>
#include <vector>

#include "comm/mpi/mpi_communicator.hpp"
#include "comm/shm/communicator.hpp"
#include "interception/storage_memory.hpp"
#include "parallel/zero/peer_arrays.hpp"
#include "support/catch.hpp"

/// Arrays that are divided among ranks, and gathered when they are used.
namespace hortator::paging {

constexpr std::int64_t part = 1280;  // whole blocks of int8
constexpr std::size_t arrays_in_test = 4;

inline std::vector<parallel::ArraySpec> peer_specs(int ranks, bool is_int8 = false) {
  std::vector<parallel::ArraySpec> specs;
  for (std::size_t i = 0; i < arrays_in_test; ++i) {
    specs.push_back({.name = std::string(1, static_cast<char>('a' + i)), .elements = part * ranks, .is_int8 = is_int8});
  }
  return specs;
}

inline double value_of(std::size_t array, int rank) { return 10.0 * static_cast<double>(array) + rank + 1; }

using Parts = std::vector<at::Tensor>;

inline Parts parts_in_memory(int rank) {
  Parts parts;
  for (std::size_t i = 0; i < arrays_in_test; ++i) parts.push_back(at::full({part}, value_of(i, rank), at::kFloat));
  return parts;
}

/// Runs over each back end between nodes, and as between devices, where ranks compare through the host.
inline void with_peers(parallel::PeerArrays::Options options,
                       const std::function<void(comm::Communicator&, parallel::PeerArrays&, const Parts&)>& check,
                       bool is_int8 = false) {
  const auto host = mpi::Communicator::world();
  comm::MpiCommunicator plain(mpi::Communicator::world());
  comm::NodeCommunicator node(mpi::Communicator::world());
  const auto over = [&](comm::Communicator& peers) {
    INFO(peers.name());
    const auto parts = parts_in_memory(peers.rank());
    parallel::PeerArrays arrays(peers, peer_specs(peers.size(), is_int8), parts, options);
    check(peers, arrays, parts);
  };
  over(plain);
  over(node);
  options.host = &host;
  over(plain);
}

inline bool is_absent(const at::Tensor& tensor) { return interception::memory_of(tensor.storage()) == nullptr; }

/// The error of reading an array; empty if there is none.
inline std::string problem_of(const at::Tensor& array) {
  try {
    array.sum();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace hortator::paging
