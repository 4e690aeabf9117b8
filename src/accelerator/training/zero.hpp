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

/// Throws unless this has a meaning, on any number of ranks.
void check(const ZeroConfig& config);

/// The ranks that share one set of shards, and the replicas of the set: the axes shard and replicate of the mesh.
class ZeroRanks {
 public:
  /// `config` has a stage. `all` are the ranks of `world`, and must outlive this. @collective
  ZeroRanks(const ZeroConfig& config, const runtime::World& world, comm::Communicator& all);
  ZeroRanks(const ZeroRanks&) = delete;
  ZeroRanks& operator=(const ZeroRanks&) = delete;

  const parallel::Sharding& sharding() const { return sharding_; }
  /// All ranks' shards, by rank of the whole world: where replicas have the same, the first group's count.
  bool counts(int rank) const { return layout_.mesh.index(parallel::Axis::replicate, rank) == 0; }
  int ranks_of_group() const { return layout_.mesh.size(parallel::Axis::shard); }
  /// This rank leaves the communicators that are not all ranks': comm::Communicator::abandon.
  bool abandon(std::string_view reason) noexcept;
  std::string text() const;  ///< "ZeRO stage 2, groups of 4 ranks"

 private:
  struct GroupLayout {
    parallel::MeshShape mesh;  ///< groups lie along the axis shard
    bool parameters = false;   ///< no rank has all of them
  };
  static GroupLayout agree(const ZeroConfig& config, const runtime::World& world, const comm::Communicator& all);
  std::unique_ptr<comm::Communicator> make_group(const runtime::World& world, const comm::Communicator& all) const;
  std::optional<mpi::Communicator> make_group_host(const runtime::World& world) const;

  GroupLayout layout_;
  int rank_;
  std::unique_ptr<comm::Communicator> group_;     ///< null: all ranks
  std::optional<mpi::Communicator> group_host_;   ///< the group, for what it compares; where it deals between devices
  std::unique_ptr<comm::Communicator> replicas_;  ///< null: there is one group
  parallel::Sharding sharding_;
};

}  // namespace hortator::accelerator
