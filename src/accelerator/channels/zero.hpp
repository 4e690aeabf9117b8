#pragma once

#include <hortator/parallel/zero.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"
#include "parallel/mesh/mesh.hpp"
#include "parallel/zero/sharding.hpp"
#include "runtime/world.hpp"

namespace hortator::accelerator {

/// Throws UsageError for a configuration that is invalid on any number of ranks.
void check(const ZeroConfig& config);

/// How parameters are gathered, from the environment. Must be the same on all ranks.
struct GatherSettings {
  bool casts = true;  ///< HORTATOR_GATHER_CAST: parameters that operators cast travel in the type of the cast
  bool ahead = true;  ///< HORTATOR_GATHER_AHEAD: the next parameters are gathered while operators use the present ones
};

/// Throws UsageError for a value that is not valid.
GatherSettings gather_settings();

/// The number of ranks of each node; 0 where nodes differ or their ranks are out of order. @collective
int ranks_of_a_node(const runtime::World& world);

/// Ranks that share one set of shards, and what compares their calls where operators gather parameters.
struct CheckedGroup {
  const parallel::RankGroup& ranks;
  std::unique_ptr<comm::Communicator> checked = {};  ///< null if calls need not be compared, or on devices
  std::optional<mpi::Communicator> host = {};        ///< compares calls on devices

  comm::Communicator& communicator() const { return checked ? *checked : ranks.on_device; }
};

/// The ranks that share one set of shards, and the replicas of the set: the axes shard and replicate of the mesh. Of
/// divided experts, the ranks along shard that hold the same ones.
class ZeroRanks {
 public:
  /// Connects the two axes. `config` must have a stage; `mesh` must outlive this. @collective
  ZeroRanks(const ZeroConfig& config, const GatherSettings& gathers, const runtime::World& world, parallel::Mesh& mesh);
  ZeroRanks(const ZeroRanks&) = delete;
  ZeroRanks& operator=(const ZeroRanks&) = delete;

  const parallel::Sharding& sharding() const { return sharding_; }
  /// Whether the rank's shards are those that checkpoints store of this rank's layers: the first group's, since
  /// replicas hold the same, and so do the ranks that compute the same batches with the same layers.
  bool counts(int rank) const;
  /// Takes this rank out of the group's own communicator: comm::Communicator::abandon. Returns whether all other ranks
  /// are free.
  bool abandon(std::string_view reason) noexcept;
  std::string text() const;  ///< "ZeRO stage 2 over groups of 4 ranks"

 private:
  bool shards_parameters(int stage, const runtime::World& world) const;  ///< @collective
  bool gathers_parameters() const { return shards_parameters_ && shard_.ranks.size() > 1; }
  parallel::ShardRanks ranks() const;             ///< @collective
  parallel::ShardRanks ranks_of_experts() const;  ///< @collective

  parallel::Mesh& mesh_;
  bool shards_parameters_;  ///< no rank holds all of them
  CheckedGroup shard_;
  std::optional<CheckedGroup> experts_;  ///< nothing unless experts are divided
  parallel::Sharding sharding_;
};

}  // namespace hortator::accelerator
