#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "step/reproducible/shard_buffers.hpp"
#include "step/reproducible/shard_gradients.hpp"

namespace hortator::step {

class ModelCore;

/// Makes gradients and buffers bitwise equal on any number of ranks. Each step of all ranks has a fixed number of
/// shards, and each rank computes its shards one after the other.
class VirtualShards {
 public:
  /// The number of shards of each rank. Throws unless a rank's sum is a node of the summation tree.
  static int shards_per_rank(int shards, int ranks);

  VirtualShards(int shards, comm::Communicator& communicator)
      : shards_(shards), own_(shards_per_rank(shards, communicator.size())), communicator_(communicator) {}

  int shards() const { return shards_; }
  int shards_per_rank() const { return own_; }

  void add(const ModelCore& model);
  /// Drops all models.
  void forget();
  /// Forgets the shards since the last synchronise(): gradients, and the buffers that they began with. Call it when
  /// weights were loaded.
  void restart();
  /// Call before this rank's shard `number` of a step.
  void begin_shard(int number);
  /// The shards that a pipeline computes at once, as micro-batches: the current one and those after it. Call
  /// begin_pipeline() before a model's step, begin_stage() and end_stage() around forward of each part in each stage,
  /// and take_stage() when its backward has left its gradients. Throws UsageError if the model has computed them
  /// already, or a parameter that another stage reads as well cannot have the gradient of one rank.
  void begin_pipeline(const ModelCore& model);
  void begin_stage(const ModelCore& model);
  void end_stage(const ModelCore& model, int stage, int part, const std::vector<at::Tensor>& results);
  void take_stage(const ModelCore& model, int stage, int part);
  /// Whether begin_pipeline() was called for some model in the current shard.
  bool has_pipeline() const;
  /// Makes gradients the means over all shards. Throws UsageError on all ranks if one has not computed some. Returns
  /// false if that was done already in this step. @collective
  bool synchronise();
  bool is_synchronised() const { return is_synchronised_; }

 private:
  struct Model {
    const ModelCore* core;
    std::vector<ShardGradients> gradients;  ///< by type and by the stages that read the parameters
    ShardBuffers buffers;
    bool has_pipeline = false;
  };

  Model& find(const ModelCore& model);
  void take_shard();
  /// Throws UsageError on all ranks unless each has computed all of its shards. @collective
  void require_whole_step();

  int shards_;
  int own_;
  comm::Communicator& communicator_;
  std::vector<Model> models_;
  int number_ = 0;  ///< of the current shard
  bool is_synchronised_ = true;
};

}  // namespace hortator::step
