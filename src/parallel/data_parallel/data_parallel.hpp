#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <hortator/parallel/data_parallel.hpp>
#include <hortator/parallel/tensor_plan.hpp>
#include <memory>
#include <optional>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"
#include "parallel/data_parallel/backward_pass.hpp"
#include "parallel/data_parallel/bucket_plan.hpp"
#include "parallel/data_parallel/common_pass.hpp"
#include "parallel/data_parallel/step_votes.hpp"
#include "parallel/mesh/rank_group.hpp"
#include "parallel/tensor/tensor_ranks.hpp"

namespace hortator::parallel {

struct Sharding;
struct StageRanks;
class StepTimes;

/// How step signals (step_signals.hpp) travel. Behind the gradients they cost nothing, but to read them from a device
/// would make the host wait for all of backward: there they go from host to host.
enum class SignalPath { behind_gradients, from_host_to_host };

/// What the ranks share that hold replicas of one model, and average its gradients.
struct DataParallel {
  comm::Communicator& communicator;  ///< for tensors on the model's device
  const mpi::Communicator& host;     ///< the same ranks
  const DistributedDataParallelOptions& options;
  const BackwardPass& pass;
  /// Averages buckets in the place of an all-reduce; null: ddp.bucket_hook, if there is one.
  std::shared_ptr<const BucketHook> own_average = {};
  StepVotes* votes = nullptr;  ///< that travel with the signals; null: none
  StepTimes* times = nullptr;  ///< that travel with the signals; null: none
  SignalPath signals = SignalPath::behind_gradients;
  const Sharding* sharding = nullptr;  ///< null if each rank has the whole model
  CommonPass::Model common_pass = {};  ///< what ranks compare of each pass
  /// The same of parameters whose gradients are averaged beside sharded ones (Sharding::ignored).
  CommonPass::Model common_pass_of_ignored = {};
  c10::Device device = c10::kCPU;  ///< the communicator's
  bool is_mixed = false;           ///< whether forward computes in a 16-bit type
  /// These ranks and those that compute the same batches: all begin with one model. Null: these ranks.
  const RankGroup* everyone = nullptr;
  std::shared_ptr<const TensorRanks> tensor = {};   ///< among which parameters are divided; null: they are not
  const TensorPlan* plan = nullptr;                 ///< by which they are divided; empty: by that of the module
  bool sequence = false;                            ///< whether activations are divided along the sequence as well
  std::shared_ptr<const TensorRanks> experts = {};  ///< among which experts are divided; null: they are not
  const RankGroup* holders = nullptr;               ///< those that have the same experts as this rank; null if all have
  std::shared_ptr<const TensorRanks> counted = {};  ///< whose tokens count in balance losses; null: this rank's

  StageRanks* stages = nullptr;  ///< that have other layers; null: each rank has all
  bool within_shards = false;    ///< these are the ranks along shard only, which train without the others (LocalSGD)

  const BucketHook& average() const { return own_average ? *own_average : options.bucket_hook; }
  comm::Communicator& first_weights() const { return everyone != nullptr ? everyone->on_device : communicator; }
  /// The ranks that average the gradients of experts.
  comm::Communicator& holders_of_experts() const { return holders != nullptr ? holders->on_device : communicator; }
  const mpi::Communicator& first_weights_host() const { return everyone != nullptr ? everyone->host : host; }
};

/// Throws UsageError unless the options are valid.
void check(const DistributedDataParallelOptions& options);

BucketLimits bucket_limits(const DistributedDataParallelOptions& options);
/// The type in which a gradient of type `own` travels.
at::ScalarType travel_type(const DistributedDataParallelOptions& options, at::ScalarType own);

}  // namespace hortator::parallel
