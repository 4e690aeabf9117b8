#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "step/reproducible/shard_buffers.hpp"
#include "step/reproducible/shard_gradients.hpp"

namespace hortator::step {

class ModelCore;

/// Gradients and buffers that are bitwise the same on any number of ranks: each step of all ranks is made of a fixed
/// number of shards, and each rank works through its share of them, one after the other.
class VirtualShards {
 public:
  /// How many shards each rank has; throws unless sums over them are nodes of one tree.
  static int shards_a_rank(int shards, int ranks);

  VirtualShards(int shards, comm::Communicator& communicator)
      : shards_(shards), own_(shards_a_rank(shards, communicator.size())), communicator_(communicator) {}

  int shards() const { return shards_; }
  int shards_a_rank() const { return own_; }

  void add(const ModelCore& model);
  void forget();
  /// This rank's shard `number` of a step comes next.
  void begin_shard(int number);
  /// Gradients become the means over all shards, once a step. Whether there was anything to do. @collective
  bool synchronise();
  bool is_synchronised() const { return is_synchronised_; }

 private:
  struct Model {
    std::vector<ShardGradients> gradients;  ///< by type
    ShardBuffers buffers;
  };

  void take_shard();

  int shards_;
  int own_;
  comm::Communicator& communicator_;
  std::vector<Model> models_;
  bool is_synchronised_ = true;
};

}  // namespace hortator::step
