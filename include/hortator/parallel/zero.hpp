#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hortator {

/// What the ranks divide among themselves in place of each holding all of it; the model and the loop stay as they are.
/// Losses and parameters are those of stage 0.
///
/// From stage 1 on the ranks of a node hold one copy of the parameters between them: writing to a parameter past the
/// optimizer is an error unless it is done within Accelerator::summon_full_parameters(). Optimizers are torch::optim's
/// AdamW, Adam, SGD, RMSprop or Adagrad, used through their prepared handles. Modules need no wrapping, in units or
/// otherwise, and parameters keep their names, shapes and places in the optimizer's groups.
///
/// On devices (share/doc/gpu.md says what of this has run on one) each rank has its part of what stage 3 shards, in the
/// device's memory; "cpu" keeps it in page-locked memory of the host, a folder in a file. What operators need next is
/// on its way meanwhile. Gradients stay on the device. Parameters that are dealt out or offloaded come to the device
/// one after the other from where the module has them, and go back there.
///
///     hortator::Accelerator accelerator({.zero = {.stage = 3, .offload_optimizer = "/scratch"}});
struct ZeroConfig {
  /// 1: the optimizer's moments; each rank steps its part of the parameters. 2: gradients, too: after backward each
  /// rank has the mean of its part, and parameters have no grad() of their own. 3: parameters, too: the ranks of a node
  /// share one copy, which needs no gathering. Over several nodes each rank has its part, and parameters come together
  /// as operators use them, in forward and again in backward: all ranks of a shard group must use them in one order
  /// then, in evaluation as well, or all of them are told where they differ. (Sharded within nodes by shard_group,
  /// parameters do not travel, except between devices.) Backward must come to them in one order in any case, unless
  /// ddp.find_unused_parameters is set. By default HORTATOR_ZERO_STAGE, or 0.
  std::optional<int> stage = {};
  /// So many ranks in a row share one set of shards; each such group is a replica of the others (FSDP's hybrid
  /// sharding). By default all ranks; ZeroConfig::node: those of a node.
  std::optional<int> shard_group = {};
  static constexpr int node = 0;
  /// Parameters in 16 bits are stepped as copies in fp32, of which each rank has its part.
  bool fp32_masters = true;
  /// Where each rank keeps its part of the moments, of the fp32 copies, and from stage 2 on of the gradients, between
  /// their uses: a folder, for files without names that go with the process, whose room is taken at once; or "cpu",
  /// which on CPUs is where they are anyway. For AdamW and Adam. (Of a device gradients stay there.)
  std::filesystem::path offload_optimizer = {};
  /// With stage 3, the same of the parameters between their uses, in forward, backward and the step. In a folder the
  /// ranks of a node have one file of the model, in the first one's; over several nodes each has a file of its part.
  std::filesystem::path offload_parameters = {};
  std::vector<std::string> keep_resident = {};  ///< parameters, or modules with all of theirs, that stay in memory
  /// Of what is offloaded, of each model's parameters and of each optimizer's moments, so much is in memory at a time;
  /// 0: what reading ahead needs, about four times ddp.bucket_cap_mb or the largest parameter. (Gradients are in the
  /// system's cache of files, which gives way to whoever needs memory.) Of parameters that come together over nodes so
  /// much stays until others take its place, as of a rank's part; 0: about twice ddp.bucket_cap_mb or the largest one.
  std::uint64_t resident_bytes = 0;
};

/// FSDP's names: FULL_SHARD (stage 3), SHARD_GRAD_OP (2), NO_SHARD (0), HYBRID_SHARD (3 within nodes),
/// HYBRID_SHARD_ZERO2 (2 within nodes); and the stages' numbers.
HORTATOR_API ZeroConfig zero_config(std::string_view strategy);

/// Of Accelerator::summon_full_parameters.
struct SummonOptions {
  bool writeback = true;  ///< what was written to the parameters stays; of each element its owner's word counts
};

/// As long as it lives, the model's parameters are whole on every rank, in memory of its own: to look at, or to write
/// past the optimizer. Without ZeRO they always are.
class HORTATOR_API SummonedParameters {
 public:
  /// @collective
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

/// Of Accelerator::get_state_dict.
struct StateDictOptions {
  /// Each rank has its own parts of the parameters, as rows of one dimension: those of the ranks one after the other
  /// are the whole. Buffers are whole, on every rank.
  bool sharded = false;
};

}  // namespace hortator
