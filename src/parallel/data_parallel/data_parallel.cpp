#include "parallel/data_parallel/data_parallel.hpp"

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::parallel {

void check(const DistributedDataParallelOptions& options) {
  if (!std::isfinite(options.bucket_cap_mb) || options.bucket_cap_mb <= 0) {
    throw UsageError(
        {.what = text::concat("ddp.bucket_cap_mb: expected a number above 0, got '", options.bucket_cap_mb, "'"),
         .why = "a bucket must hold at least one gradient",
         .hint = "the default is 25"});
  }
  if (options.error_feedback && options.comm_hook == DDPCommunicationHookType::no) {
    throw UsageError({.what = "ddp.error_feedback is set without a ddp.comm_hook",
                      .why = "gradients that travel in their own type are not rounded",
                      .hint = "set ddp.comm_hook to fp16 or bf16"});
  }
  if (options.bucket_hook && options.comm_hook != DDPCommunicationHookType::no) {
    throw UsageError({.what = "ddp.bucket_hook and ddp.comm_hook are both set",
                      .why = "the function gets gradients in their own type",
                      .hint = "convert them in the function, or leave one of the two out"});
  }
  if (options.check_replicas_every < 0) {
    throw UsageError({.what = text::concat("ddp.check_replicas_every: expected a whole number from 0, got '",
                                           options.check_replicas_every, "'"),
                      .hint = "use a number of passes, or 0 for never"});
  }
}

BucketLimits bucket_limits(const DistributedDataParallelOptions& options) {
  BucketLimits limits;
  limits.bytes = std::max<std::int64_t>(1, std::llround(std::min(options.bucket_cap_mb, 1e9) * (1 << 20)));
  limits.first_bytes = std::min(limits.first_bytes, limits.bytes);
  return limits;
}

at::ScalarType travel_type(const DistributedDataParallelOptions& options, at::ScalarType own) {
  switch (options.comm_hook) {
    case DDPCommunicationHookType::fp32:
      return at::kFloat;
    case DDPCommunicationHookType::fp16:
      return at::kHalf;
    case DDPCommunicationHookType::bf16:
      return at::kBFloat16;
    case DDPCommunicationHookType::no:
      break;
  }
  return own;
}

}  // namespace hortator::parallel
