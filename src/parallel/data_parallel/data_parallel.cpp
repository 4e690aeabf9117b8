#include "parallel/data_parallel/data_parallel.hpp"

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::parallel {

namespace {

void check(const PowerSGDOptions& options) {
  const auto refuse = [](const char* option, auto value, const char* why, const char* hint) {
    throw UsageError({.what = text::concat("ddp.power_sgd.", option, " is ", value), .why = why, .hint = hint});
  };
  if (options.rank < 1) refuse("rank", options.rank, "it is the number of columns of the factors", "use 1 to 32");
  const auto first = options.error_feedback || options.warm_start ? 2 : 0;
  if (options.start_step < first)
    refuse("start_step", options.start_step, "errors and factors are those of gradients that backward has reached",
           "use 2 or more, or leave error_feedback and warm_start off");
  if (!std::isfinite(options.min_compression) || options.min_compression < 1)
    refuse("min_compression", options.min_compression, "a matrix is sent in factors if they are smaller by it",
           "the default is 2");
}

}  // namespace

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
  if (options.error_feedback && options.comm_hook == DDPCommunicationHookType::power_sgd) {
    throw UsageError({.what = "ddp.error_feedback is set with ddp.comm_hook = power_sgd",
                      .why = "it is for gradients in 16 bits",
                      .hint = "leave it out: ddp.power_sgd.error_feedback is on by default"});
  }
  if (options.comm_hook == DDPCommunicationHookType::power_sgd) check(options.power_sgd);
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
    case DDPCommunicationHookType::power_sgd:
      break;
  }
  return own;
}

}  // namespace hortator::parallel
