#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hortator {

/// What the ranks shard instead of each holding all of it. The model and the training loop do not change; losses and
/// parameters are those of stage 0.
///
/// From stage 1 on the ranks of a node share one copy of the parameters: writing to a parameter past the optimizer is
/// an error except within Accelerator::summon_full_parameters(). Optimizers must be torch::optim's AdamW, Adam, SGD,
/// RMSprop or Adagrad, Hortator's (training/optimizers.hpp), an ElementwiseOptimizer or a SlicedOptimizer, used through
/// their prepared handles. Modules need no wrapping, and parameters keep their names, shapes and positions in the
/// optimizer's groups.
///
/// On devices (share/doc/gpu.md says what of this has been run on one) each rank has its part of what stage 3 shards,
/// in the device's memory; with "cpu" in page-locked memory of the host, with a folder in a file. What operators need
/// next is fetched meanwhile. Gradients stay on the device. Sharded or offloaded parameters are copied to the device
/// one after the other from where the module has them, and return there.
///
///     hortator::Accelerator accelerator({.zero = {.stage = 3, .offload_optimizer = "/scratch"}});
struct ZeroConfig {
  /// 1: shards the optimizer's moments; each rank steps its part of the parameters. 2: gradients as well: after
  /// backward each rank has the mean of its part, and parameters have no grad(). 3: parameters as well: the ranks of a
  /// node share one copy, which needs no gathering. Over several nodes each rank has its part, and parameters are
  /// gathered when operators use them, in forward and again in backward: all ranks of a shard group must then use them
  /// in one order, in evaluation as well; if they do not, all of them throw and report where they differ. (Sharded
  /// within nodes by shard_group, parameters do not travel, except between devices.) Backward must always reach them in
  /// one order, unless ddp.find_unused_parameters is set. Default: HORTATOR_ZERO_STAGE, or 0.
  std::optional<int> stage = {};
  /// Number of consecutive ranks that share one set of shards; each such group is a replica of the others (FSDP's
  /// hybrid sharding). ZeroConfig::node: the ranks of a node. Default: all ranks.
  std::optional<int> shard_group = {};
  static constexpr int node = 0;
  /// Whether 16-bit parameters are stepped as copies in fp32. Each rank has its part of the copies.
  bool fp32_masters = true;
  /// Where each rank keeps its part of the moments, of the fp32 copies, and from stage 2 on of the gradients, between
  /// their uses: a folder, for unnamed files that disappear with the process and whose space is allocated at once; or
  /// "cpu", which has no effect on CPUs. Only for AdamW and Adam. (Gradients on a device stay there.)
  std::filesystem::path offload_optimizer = {};
  /// With stage 3, where parameters are between their uses, in forward, backward and the step; values as for
  /// offload_optimizer. In a folder the ranks of a node share one file of the model, in the first rank's folder; over
  /// several nodes each rank has a file of its part.
  std::filesystem::path offload_parameters = {};
  std::vector<std::string> keep_resident = {};  ///< parameters, or modules with all of theirs, that stay in memory
  /// Parameters, or modules with all of theirs, that are as at stage 0: each rank has all of them with their gradients
  /// and moments, and the ranks average the gradients; FSDP's ignored_modules. In names * stands for any text. A
  /// parameter of several names is left out if its first one is named. Default: HORTATOR_ZERO_IGNORE, or none.
  std::vector<std::string> ignore = {};
  /// The most bytes that are in memory at a time, for each kind: a model's offloaded parameters; an optimizer's
  /// offloaded moments; gathered parameters, and a rank's offloaded part of them, which stay until others replace them.
  /// 0 means what reading ahead needs. For offloaded parameters and moments that is about four times ddp.bucket_cap_mb
  /// or the largest parameter; for gathered ones about three times (with HORTATOR_GATHER_AHEAD=0 twice). Gradients are
  /// in the system's file cache, which is freed when memory is short.
  std::uint64_t resident_bytes = 0;
  /// With stage 3, whether matrices, and parameters of more dimensions, are gathered as 8-bit integers, with a scale
  /// for each 64 of them (ZeRO++'s qwZ): about a quarter of fp32's bytes. Operators compute with the rounded values,
  /// the same on all ranks; what reads a parameter in any other way, such as a norm of it, gets them, too. The
  /// optimizer's step, checkpoints, summon_full_parameters() and get_state_dict() have exact values. Has no effect, and
  /// a warning says so, where parameters do not travel. Default: HORTATOR_INT8_GATHERS, or false.
  bool int8_gathers = false;
};

/// FSDP's names: FULL_SHARD (stage 3), SHARD_GRAD_OP (2), NO_SHARD (0), HYBRID_SHARD (3 within nodes),
/// HYBRID_SHARD_ZERO2 (2 within nodes); and the stages' numbers.
HORTATOR_API ZeroConfig zero_config(std::string_view strategy);

/// Options of Accelerator::summon_full_parameters.
struct SummonOptions {
  bool writeback = true;  ///< whether changes are kept; of each element, its first owner's value, or modifier_rank's
  /// Parameters, or modules with all of theirs, that are summoned; empty: all. Divided parameters (parallel.tensor and
  /// others) are all whole in any case. DeepSpeed's GatheredParameters.
  std::vector<std::string> parameters = {};
  /// The process whose changes count, so that the others need write nothing: at the end of the scope all ranks get its
  /// values of the summoned parameters.
  std::optional<int> modifier_rank = {};
};

/// While it lives, every rank has the model's full parameters in memory of its own, or the chosen ones, to be read, or
/// written past the optimizer. Without ZeRO that is always so.
class HORTATOR_API SummonedParameters {
 public:
  /// @collective
  [[nodiscard]] SummonedParameters(const ModelBase& model, SummonOptions options);
  /// @collective
  ~SummonedParameters() noexcept(false);
  SummonedParameters(const SummonedParameters&) = delete;
  SummonedParameters& operator=(const SummonedParameters&) = delete;

 private:
  ModelBase model_;
  SummonOptions options_;
  std::vector<at::Tensor> chosen_;
  int exceptions_;
};

/// Options of Accelerator::get_state_dict.
struct StateDictOptions {
  /// Whether each rank gets only its own parts of the parameters, as tensors of one dimension; the parts of all ranks,
  /// one after the other, are the whole parameter. Every rank gets whole buffers.
  bool sharded = false;
};

}  // namespace hortator
