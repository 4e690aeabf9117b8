#pragma once

#include <hortator/zero.hpp>
#include <memory>
#include <string>

#include "comm/communicator.hpp"
#include "runtime/world.hpp"
#include "train/sharding.hpp"

namespace hortator::accelerator {

/// Throws unless this has a meaning, on any number of ranks.
void check(const ZeroConfig& config);

/// The ranks among which shards are dealt.
class ZeroRanks {
 public:
  /// `config` has a stage. `all` are the ranks of `world`, and must outlive this. @collective
  ZeroRanks(const ZeroConfig& config, const runtime::World& world, comm::Communicator& all);
  ZeroRanks(const ZeroRanks&) = delete;
  ZeroRanks& operator=(const ZeroRanks&) = delete;

  const train::Sharding& sharding() const { return sharding_; }
  /// All ranks' shards, by rank of the whole world: where replicas have the same, the first group's count.
  bool counts(int rank) const { return rank < size_; }
  int ranks_of_group() const { return size_; }
  std::string words() const;  ///< "ZeRO stage 2, groups of 4 ranks"

 private:
  int size_;  ///< of a group
  int rank_;
  std::unique_ptr<comm::Communicator> group_;     ///< null: all ranks
  std::unique_ptr<comm::Communicator> replicas_;  ///< null: there is one group
  train::Sharding sharding_;
};

}  // namespace hortator::accelerator
