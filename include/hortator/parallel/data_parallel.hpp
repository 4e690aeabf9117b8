#pragma once

#include <cstdint>

namespace hortator {

/// The type in which gradients travel between ranks. They keep their own type before and after.
enum class DDPCommunicationHookType {
  no,    ///< their own
  fp32,  ///< fp64 gradients at half their size, 16-bit ones without rounding on the way
  fp16,  ///< divided by the number of ranks before they are added, so that the sum does not overflow
  bf16,  ///< the range of fp32 with 8 bits of precision
};

/// How gradients are averaged over ranks; the reference's DistributedDataParallelKwargs. With one rank nothing is
/// averaged and none of it matters.
struct DistributedDataParallelOptions {
  /// Buffers (running means, counters) become rank 0's when a synchronised backward is over, and before each further
  /// forward in training mode: all ranks evaluate and save the same.
  bool broadcast_buffers = true;
  /// Gradients travel together until they fill so many MiB. The first bucket is of 1 MiB at most, so that communication
  /// starts early in the backward pass.
  double bucket_cap_mb = 25;
  /// Parameters may get no gradient in a pass: unused on all ranks, they keep the gradient that they had (none stays
  /// none); unused on some, these count as zero. Without it such a parameter is an error that names it.
  bool find_unused_parameters = false;
  DDPCommunicationHookType comm_hook = DDPCommunicationHookType::no;
  /// What a rank's gradient loses when it is rounded to comm_hook's type is added to that of the next pass. (The
  /// rounding of the average itself remains.) Takes memory for one more gradient a parameter.
  bool error_feedback = false;
  /// After every so many synchronised backward passes the ranks compare a hash of their parameters, and a rank that
  /// differs is named in an error together with its first parameter that does. 0: never.
  std::int64_t check_replicas_every = 0;
};

/// Seconds that this rank has spent on keeping the ranks' models together since they were prepared.
struct GradientTimes {
  double copying = 0;   ///< gradients into and out of buckets
  double starting = 0;  ///< reductions, while backward goes on
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
