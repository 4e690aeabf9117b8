#pragma once

#include <hortator/parallel/zero.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"
#include "parallel/mesh/mesh_shape.hpp"
#include "parallel/zero/sharding.hpp"
#include "runtime/world.hpp"

namespace hortator::accelerator {

/// Throws UsageError for a configuration that is invalid on any number of ranks.
void check(const ZeroConfig& config);

/// The ranks that share one set of shards, and the replicas of the set: the axes shard and replicate of the mesh.
class ZeroRanks {
 public:
  /// Makes the communicators of the groups. `config` must have a stage; `all` has the ranks of `world` and must outlive
  /// this.
  /// @collective
  ZeroRanks(const ZeroConfig& config, const runtime::World& world, comm::Communicator& all);
  ZeroRanks(const ZeroRanks&) = delete;
  ZeroRanks& operator=(const ZeroRanks&) = delete;

  const parallel::Sharding& sharding() const { return sharding_; }
  /// Whether this rank's shards are those that checkpoints store: the first group's, since replicas hold the same.
  bool counts(int rank) const { return layout_.mesh.index(parallel::Axis::replicate, rank) == 0; }
  int ranks_of_group() const { return layout_.mesh.size(parallel::Axis::shard); }
  /// Takes this rank out of the groups' communicators: comm::Communicator::abandon. Returns whether all other ranks are
  /// free.
  bool abandon(std::string_view reason) noexcept;
  std::string text() const;  ///< "ZeRO stage 2 over groups of 4 ranks"

 private:
  struct GroupLayout {
    parallel::MeshShape mesh;  ///< groups lie along the axis shard
    bool parameters = false;   ///< parameters are sharded: no rank holds all of them
  };
  static GroupLayout agree(const ZeroConfig& config, const runtime::World& world, const comm::Communicator& all);
  std::unique_ptr<comm::Communicator> make_group(const runtime::World& world, const comm::Communicator& all) const;
  std::optional<mpi::Communicator> make_group_host(const runtime::World& world) const;

  GroupLayout layout_;
  int rank_;
  std::unique_ptr<comm::Communicator> group_;     ///< null if all ranks are one group
  std::optional<mpi::Communicator> group_host_;   ///< compares calls; only if parameters are sharded between devices
  std::unique_ptr<comm::Communicator> replicas_;  ///< null if there is one group
  parallel::Sharding sharding_;
};

}  // namespace hortator::accelerator
