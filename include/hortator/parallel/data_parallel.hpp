#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hortator {

/// How gradients travel between ranks. They have their own type before and after.
enum class DDPCommunicationHookType {
  no,         ///< in their own type
  fp32,       ///< fp64 gradients at half their size, 16-bit ones without rounding on the way
  fp16,       ///< divided by the number of ranks before they are added, so that the sum does not overflow
  bf16,       ///< the range of fp32 with 8 bits of precision
  power_sgd,  ///< large matrices as products of two thin ones: DistributedDataParallelOptions::power_sgd
};

/// Gradients of matrices as products of two thin factors, for slow networks (PowerSGD): a matrix of m x n travels as
/// (m + n) * rank numbers, found by one step of power iteration. Gradients of more dimensions are matrices of their
/// first one by the others. Costs about as much as reading the gradients five times.
struct PowerSGDOptions {
  std::int64_t rank = 1;  ///< columns of the factors, 1 to 4 in most trainings: more are more exact
  /// Averages of whole gradients at the beginning, while gradients change fast.
  std::int64_t start_step = 1000;
  /// Matrices whose factors do not have fewer elements by this factor travel whole, as vectors do.
  double min_compression = 2;
  bool warm_start = true;  ///< whether each pass begins with the factors of the last one
  /// Whether what the factors miss is added to the next gradients. Needs memory of one more gradient; checkpoints hold
  /// it for each rank.
  bool error_feedback = true;
};

/// Where a parameter's gradient is in a bucket.
struct BucketPart {
  std::string name = {};     ///< of the parameter in its model
  at::Tensor gradient = {};  ///< a view of the bucket's gradients, with the parameter's sizes
};

/// A bucket of gradients that a function of your own averages over the ranks.
struct BucketExchange {
  /// This rank's gradients of the bucket's parameters, as one row of their type. The function must leave the same
  /// values in it on all ranks: by default the mean. Elements between gradients are zeros and must stay zeros.
  at::Tensor gradients = {};
  std::vector<BucketPart> parts = {};  ///< the parameters of the bucket
  std::int64_t index = 0;  ///< of the bucket: the same buckets come in the same order on all ranks, in each pass
  int rank = 0;
  int ranks = 1;
  std::function<void(at::Tensor)> sum = {};  ///< replaces a tensor by the sum over the ranks. @collective
  /// Returns the ranks' tensors of one shape as the rows of a new one. @collective
  std::function<at::Tensor(const at::Tensor&)> gather = {};
};

/// Averages a bucket. Called on all ranks, in backward, when the bucket is full; must call the same collectives on all
/// ranks. It may keep state of its own, such as rounding errors by index.
using BucketHook = std::function<void(BucketExchange&)>;

/// How gradients are averaged over ranks; DistributedDataParallelKwargs in Hugging Face Accelerate. Without effect on
/// one rank.
struct DistributedDataParallelOptions {
  /// Whether rank 0's buffers (running means, counters) are given to all ranks after each synchronised backward, and
  /// before each further forward in training mode, so that all ranks evaluate the same. Files always hold rank 0's.
  bool broadcast_buffers = true;
  /// Size in MiB at which a bucket of gradients is sent. The first bucket has at most 1 MiB, so that communication
  /// starts early in the backward pass.
  double bucket_cap_mb = 25;
  /// Whether parameters may get no gradient in a pass. A parameter that is unused on all ranks keeps the gradient that
  /// it had, or none; if some ranks use it, the others count as zero. If a pass reaches several models, only the first
  /// that was prepared sends gradients before backward ends. If false, a parameter without a gradient is an error that
  /// names it.
  bool find_unused_parameters = false;
  DDPCommunicationHookType comm_hook = DDPCommunicationHookType::no;
  PowerSGDOptions power_sgd = {};  ///< if comm_hook is power_sgd; not with reproducible or at ZeRO's stages 2 and 3
  /// Whether the error of rounding a rank's gradient to comm_hook's 16-bit type is added to the gradient of the next
  /// pass. (The average itself is still rounded.) Needs memory of one more gradient; checkpoints do not hold these
  /// errors.
  bool error_feedback = false;
  /// Averages each bucket in the place of an all-reduce; without effect on one rank. Backward waits for it. Not with
  /// comm_hook, with reproducible or at ZeRO's stages 2 and 3.
  BucketHook bucket_hook = {};
  /// Number of synchronised backward passes after which the ranks compare a hash of their parameters. If a rank
  /// differs, an error names it and its first parameter that differs. 0: never.
  std::int64_t check_replicas_every = 0;
};

/// Seconds that this rank has spent on synchronising the ranks' models since they were prepared.
struct GradientTimes {
  double copying = 0;   ///< gradients into and out of buckets
  double starting = 0;  ///< reductions, while backward runs
  double waiting = 0;   ///< for other ranks and for reductions to end, after backward
  double buffers = 0;   ///< broadcasting buffers

  GradientTimes& operator+=(const GradientTimes& other) {
    copying += other.copying;
    starting += other.starting;
    waiting += other.waiting;
    buffers += other.buffers;
    return *this;
  }
};

}  // namespace hortator
