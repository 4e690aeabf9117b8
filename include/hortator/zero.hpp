#pragma once

#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <optional>
#include <string_view>

namespace hortator {

/// What the ranks divide among themselves in place of each holding all of it; the model and the loop stay as they are.
/// Losses and parameters are those of stage 0.
///
/// From stage 1 on the ranks of a node hold one copy of the parameters between them: writing to a parameter past the
/// optimizer is an error unless it is done within Accelerator::summon_full_parameters(). Optimizers are torch::optim's
/// AdamW, Adam, SGD, RMSprop or Adagrad, used through their prepared handles.
struct ZeroConfig {
  /// 1: the optimizer's moments; each rank steps its part of the parameters. 2: gradients, too: after backward each
  /// rank has the mean of its part, and parameters have no grad() of their own. 3: parameters, too; for now within a
  /// node, where the ranks share one copy already. By default HORTATOR_ZERO_STAGE, or 0.
  std::optional<int> stage = {};
  /// So many ranks in a row share one set of shards; each such group is a replica of the others (FSDP's hybrid
  /// sharding). By default all ranks; ZeroConfig::node: those of a node.
  std::optional<int> shard_group = {};
  static constexpr int node = 0;
  /// Parameters in 16 bits are stepped as copies in fp32, of which each rank has its part.
  bool fp32_masters = true;
};

/// FSDP's names: FULL_SHARD (stage 3), SHARD_GRAD_OP (2), NO_SHARD (0), HYBRID_SHARD (3 within nodes),
/// HYBRID_SHARD_ZERO2 (2 within nodes); and the stages' numbers.
HORTATOR_API ZeroConfig zero_config(std::string_view strategy);

struct SummonOptions {
  bool writeback = true;  ///< what was written to the parameters stays; of each element its owner's word counts
};

/// As long as it lives, the model's parameters are whole on every rank, in memory of its own: to look at, or to write
/// past the optimizer. Without ZeRO they always are.
class HORTATOR_API SummonedParameters {
 public:
  [[nodiscard]] SummonedParameters(const ModelBase& model, const SummonOptions& options);
  /// @collective
  ~SummonedParameters() noexcept(false);
  SummonedParameters(const SummonedParameters&) = delete;
  SummonedParameters& operator=(const SummonedParameters&) = delete;

 private:
  ModelBase model_;
  SummonOptions options_;
  int exceptions_;
};

struct StateDictOptions {
  /// Each rank has its own parts of the parameters, as rows of one dimension: those of the ranks one after the other
  /// are the whole. Buffers are whole, on every rank.
  bool sharded = false;
};

}  // namespace hortator
