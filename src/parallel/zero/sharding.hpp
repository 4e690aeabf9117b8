#pragma once

#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"
#include "parallel/zero/flat_parameters.hpp"

namespace hortator::parallel {

/// How the ranks share what belongs to a model.
struct Sharding {
  int stage;                     ///< 1: moments; 2: gradients, too; 3: parameters, too
  comm::Communicator& group;     ///< ranks among which shards are dealt
  comm::Communicator* replicas;  ///< ranks that have the same shard, one of each group; null where there is one group
  parallel::Masters masters;
  parallel::Residence parameters = {};  ///< where they are between their uses
  parallel::Residence moments = {};     ///< and the fp32 copies
  bool shards_parameters = false;       ///< no rank has all of them, since the group's share no memory
  int first_rank = 0;                   ///< of the group, among all
  std::vector<std::string> keep_resident = {};
  const mpi::Communicator* group_host = nullptr;  ///< the group, where it deals parameters out between devices

  /// Parameters come to the device in turn: before that they are better off the device.
  bool pages_parameters() const { return shards_parameters || parameters.is_elsewhere(); }
  /// Gradients are kept as shards, those of the slices.
  bool scatters_gradients() const { return stage >= 2; }
};

}  // namespace hortator::parallel
