#include "accelerator/training/checked_options.hpp"

#include <hortator/error.hpp>

#include "accelerator/channels/zero.hpp"
#include "accelerator/protection/straggler_report.hpp"
#include "core/text/text.hpp"
#include "observe/trackers/tracker_factory.hpp"
#include "parallel/data_parallel/data_parallel.hpp"
#include "parallel/mesh/mesh_plan.hpp"
#include "step/gradients/protection.hpp"
#include "step/precision/loss_scale.hpp"
#include "step/precision/precision.hpp"

namespace hortator::accelerator {
namespace {

template <typename Options>
void check_interval(const Options& options, const char* group) {
  const auto refuse = [&](const std::string& what, const char* why) {
    throw UsageError({.what = group + what, .why = why, .hint = "leave it out for none"});
  };
  if (options.every_steps < 0)
    refuse(text::concat("every_steps = ", options.every_steps), "it counts the steps between two checkpoints");
  if (options.every.count() < 0)
    refuse(text::concat("every = ", options.every.count(), "ms"), "it is the time between two checkpoints");
}

void check(const CheckpointOptions& options) {
  check_interval(options, "checkpoint.");
  if (options.nodes_per_file.value_or(1) < 1) {
    throw UsageError({.what = text::concat("checkpoint.nodes_per_file = ", *options.nodes_per_file),
                      .why = "every file of a checkpoint is written by the ranks of at least one node",
                      .hint = "leave it out for the default"});
  }
  if (options.asynchronous && options.writer == CheckpointWriter::mpio) {
    throw UsageError({.what = "checkpoint.asynchronous with CheckpointWriter::mpio",
                      .why = "MPI-IO belongs to the program while a checkpoint is written beside it",
                      .hint = "use CheckpointWriter::direct, which writes the same datasets"});
  }
  if (options.incremental && options.writer == CheckpointWriter::mpio) {
    throw UsageError({.what = "checkpoint.incremental with CheckpointWriter::mpio",
                      .why = "MPI-IO writes all tensors of a rank into one file",
                      .hint = "use CheckpointWriter::direct, which writes the same datasets"});
  }
}

// Those in memory, or on the nodes' disks.
template <typename Options>
void check_of_nodes(const Options& options, const char* group) {
  const auto refuse = [&](const std::string& what, const char* why) {
    throw UsageError({.what = group + what, .why = why, .hint = "leave it out for the default"});
  };
  check_interval(options, group);
  if (options.partner < 0) refuse(text::concat("partner = ", options.partner), "it counts the nodes that hold a copy");
  if (options.max_bytes.value_or(1) < 1) refuse(text::concat("max_bytes = ", *options.max_bytes), "no checkpoint fits");
}

void check(const RecordOptions& options) {
  if (options.step < 1)
    throw UsageError({.what = text::concat("record.step = ", options.step),
                      .why = "it is the number of an update, from 1",
                      .hint = "leave it out for the first step"});
}

void check_each_node(const AcceleratorOptions& options) {
  if (!options.project.save_on_each_node) return;
  const auto refuse = [](const char* option) {
    throw UsageError({.what = text::concat("project.save_on_each_node = true with ", option),
                      .why = "the ranks of a node write its part at once, and nodes then send each other the files",
                      .hint = "leave one of the two out"});
  };
  if (options.checkpoint.asynchronous) refuse("checkpoint.asynchronous = true");
  if (options.checkpoint.incremental) refuse("checkpoint.incremental = true");
  if (options.checkpoint.writer == CheckpointWriter::mpio) refuse("CheckpointWriter::mpio");
}

void check_together(const AcceleratorOptions& options) {
  check_each_node(options);
  if (options.reproducible && options.zero.int8_gathers) {
    throw UsageError({.what = "reproducible = true with zero.int8_gathers",
                      .why = "parameters are rounded in blocks, which depend on the number of ranks",
                      .hint = "leave int8_gathers out"});
  }
  if (options.reproducible && options.parallel.tensor.value_or(1) > 1) {
    throw UsageError({.what = text::concat("reproducible = true with parallel.tensor = ", *options.parallel.tensor),
                      .why = "sums over the parts of a divided model depend on their number",
                      .hint = "leave one of the two out"});
  }
  if (options.ddp.error_feedback && options.zero.stage.value_or(0) > 1) {
    throw UsageError({.what = text::concat("ddp.error_feedback with zero.stage = ", *options.zero.stage),
                      .why = "what rounding takes from each gradient would be kept whole on every rank",
                      .hint = "leave error_feedback off, or use stage 1"});
  }
  if (options.reproducible && options.parallel.micro_batches.value_or(1) > 1) {
    throw UsageError(
        {.what = text::concat("reproducible = true with parallel.micro_batches = ", *options.parallel.micro_batches),
         .why = "a micro-batch is a virtual shard, on any number of ranks",
         .hint = "leave micro_batches out, and set virtual_shards for more of them"});
  }
  if (options.reproducible && options.parallel.context.value_or(1) > 1) {
    throw UsageError({.what = text::concat("reproducible = true with parallel.context = ", *options.parallel.context),
                      .why = "a virtual shard is computed by one rank",
                      .hint = "leave parallel.context out"});
  }
  if (options.reproducible && options.parallel.experts.value_or(1) > 1) {
    throw UsageError({.what = text::concat("reproducible = true with parallel.experts = ", *options.parallel.experts),
                      .why = "a virtual shard is computed by one rank",
                      .hint = "leave parallel.experts out"});
  }
  if (options.protection.on_nonfinite != OnNonfinite::proceed &&
      (options.reproducible || options.grad_scaler.late_verdict)) {
    throw UsageError({.what = text::concat("protection.on_nonfinite with ",
                                           options.reproducible ? "reproducible = true" : "grad_scaler.late_verdict"),
                      .why = "whether an update is left out is decided before it, with what travels with the gradients",
                      .hint = "leave one of them out"});
  }
  const bool is_low_rank = options.ddp.comm_hook == DDPCommunicationHookType::power_sgd;
  if ((options.ddp.bucket_hook || is_low_rank) && (options.reproducible || options.zero.stage.value_or(0) > 1)) {
    const auto* const option = is_low_rank ? "ddp.comm_hook = power_sgd" : "ddp.bucket_hook";
    throw UsageError({.what = options.reproducible ? text::concat(option, " with reproducible = true")
                                                   : text::concat(option, " with zero.stage = ", *options.zero.stage),
                      .why = "gradients travel in other ways there, not as buckets of whole gradients",
                      .hint = "leave it out, or use stage 0 or 1 without reproducible"});
  }
  if (options.reproducible && !options.data.even_batches) {
    throw UsageError({.what = "reproducible = true with data.even_batches = false",
                      .why = "each step has a fixed number of shards, all of one size",
                      .hint = "leave even_batches on, or use drop_last"});
  }
  if (options.reproducible && options.data.dispatch_batches.value_or(false)) {
    throw UsageError({.what = "reproducible = true with data.dispatch_batches = true",
                      .why = "what a data set draws at random belongs to the rank that trains on it",
                      .hint = "let each rank read its own batches"});
  }
}

void check_type(std::optional<c10::ScalarType> type, std::string_view name) {
  const auto value = type.value_or(at::kFloat);
  if (value == at::kFloat || value == at::kHalf || value == at::kBFloat16) return;
  throw UsageError({.what = text::concat("mixed_precision_policy.", name, " is ", c10::toString(value)),
                    .hint = "use kFloat, kHalf or kBFloat16"});
}

/// Checks the types, and lets gradients travel in the one of `reduce`.
void apply_policy(AcceleratorOptions& options) {
  const auto& policy = options.mixed_precision_policy;
  check_type(policy.reduce, "reduce");
  check_type(policy.output, "output");
  check_type(policy.buffer, "buffer");
  if ((policy.output || policy.buffer) && options.mixed_precision == Precision::no) {
    throw UsageError({.what = text::concat("mixed_precision_policy.", policy.output ? "output" : "buffer",
                                           " is set without mixed_precision"),
                      .why = "models compute in the types of their tensors",
                      .hint = "set mixed_precision, or convert the module"});
  }
  if (!policy.reduce) return;
  const auto hook = *policy.reduce == at::kFloat  ? DDPCommunicationHookType::fp32
                    : *policy.reduce == at::kHalf ? DDPCommunicationHookType::fp16
                                                  : DDPCommunicationHookType::bf16;
  if (options.ddp.comm_hook != DDPCommunicationHookType::no && options.ddp.comm_hook != hook) {
    throw UsageError({.what = "mixed_precision_policy.reduce and ddp.comm_hook are both set",
                      .why = "each decides how gradients travel",
                      .hint = "leave one of them out"});
  }
  options.ddp.comm_hook = hook;
}

}  // namespace

AcceleratorOptions checked(AcceleratorOptions options) {
  step::check(options.grad_scaler);
  options.mixed_precision = step::choose_precision(options.mixed_precision, core::process_variables());
  apply_policy(options);
  parallel::check(options.ddp);
  check(options.checkpoint);
  check_of_nodes(options.memory_checkpoint, "memory_checkpoint.");
  check_of_nodes(options.local_checkpoint, "local_checkpoint.");
  check(options.record);
  observe::check_trackers(options.log_with);
  check(options.zero);
  parallel::check(options.parallel, options.zero);
  step::check(options.protection);
  check(options.stragglers);
  check_together(options);
  return options;
}

}  // namespace hortator::accelerator
