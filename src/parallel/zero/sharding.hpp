#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"
#include "parallel/zero/flat_parameters.hpp"

namespace hortator::parallel {

/// Ranks over which parameters are sharded.
struct ShardRanks {
  comm::Communicator& group;
  comm::Communicator* replicas = nullptr;   ///< those with the same shard, one of each group; null if there is one
  int first_rank = 0;                       ///< of the group, among all
  int rank_stride = 1;                      ///< between the group's ranks, among all
  const mpi::Communicator* host = nullptr;  ///< the group, if it shards parameters between devices
};

/// How the ranks shard a model.
struct Sharding {
  int stage;                               ///< 1: moments; 2: gradients as well; 3: parameters as well
  ShardRanks ranks;                        ///< of the parameters that all ranks have
  std::optional<ShardRanks> experts = {};  ///< of divided experts: of `ranks`, those that hold the same
  Masters masters;
  ArrayPlacement parameters = {};  ///< where parameters are between their uses
  ArrayPlacement moments = {};     ///< where moments and fp32 copies are
  bool shards_parameters = false;  ///< no rank has all of them, since the group shares no memory
  std::vector<std::string> keep_resident = {};
  std::vector<std::string> ignored = {};  ///< parameters, or modules, that are not sharded
  /// Whether a model whose forward pass computes in a 16-bit type has its parameters gathered in that type.
  bool casts_gathers = true;
  bool int8_gathers = false;  ///< whether matrices are gathered in int8 blocks
  bool gathers_ahead = true;  ///< whether the next array is gathered while one is in use

  /// Whether parameters are on the device only in turn. Before prepare() they should not be on it.
  bool pages_parameters() const { return shards_parameters || parameters.is_offloaded(); }
  /// Whether gradients are kept as shards, as the slices' gradients.
  bool scatters_gradients() const { return stage >= 2; }
};

}  // namespace hortator::parallel
