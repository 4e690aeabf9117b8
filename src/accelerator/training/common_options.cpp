#include "accelerator/training/common_options.hpp"

#include <string>
#include <utility>
#include <vector>

#include "accelerator/training/launched.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"

namespace hortator::accelerator {
namespace {

/// An option's name, with the variable that sets it as well, and its value.
using NamedValues = std::vector<std::pair<std::string, std::string>>;

template <typename... Parts>
void add(NamedValues& values, std::string name, const Parts&... parts) {
  values.emplace_back(std::move(name), text::concat(parts...));
}

void add_training(NamedValues& values, const AcceleratorOptions& options) {
  add(values, "gradient_accumulation_steps (HORTATOR_GRADIENT_ACCUMULATION_STEPS)",
      options.gradient_accumulation_steps);
  add(values, "gradient_accumulation.sync_with_dataloader", options.gradient_accumulation.sync_with_dataloader);
  add(values, "gradient_accumulation.sync_each_batch", options.gradient_accumulation.sync_each_batch);
  add(values, "the largest norm of gradients (HORTATOR_GRADIENT_CLIPPING)", launched_clipping().value_or(0));
  add(values, "reproducible", options.reproducible);
  add(values, "virtual_shards", options.virtual_shards);
  add(values, "schedule_step", static_cast<int>(options.schedule_step));
  add(values, "step_scheduler_with_optimizer", options.step_scheduler_with_optimizer);
  add(values, "fused_optimizer", options.fused_optimizer);
}

void add_precision(NamedValues& values, const AcceleratorOptions& options) {
  const auto& scaler = options.grad_scaler;
  add(values, "grad_scaler.enabled", scaler.enabled);
  add(values, "grad_scaler.init_scale", scaler.init_scale);
  add(values, "grad_scaler.growth_factor", scaler.growth_factor);
  add(values, "grad_scaler.backoff_factor", scaler.backoff_factor);
  add(values, "grad_scaler.growth_interval", scaler.growth_interval);
  add(values, "grad_scaler.late_verdict", scaler.late_verdict);
  add(values, "autocast.enabled", options.autocast.enabled);
}

void add_protection(NamedValues& values, const AcceleratorOptions& options) {
  const auto& protection = options.protection;
  add(values, "protection.on_nonfinite", static_cast<int>(protection.on_nonfinite));
  add(values, "protection.loss_spike_factor", protection.loss_spike_factor);
  add(values, "protection.max_skips_in_a_row", protection.max_skips_in_a_row);
  add(values, "protection.snapshot_every", protection.snapshot_every);
  add(values, "protection.max_rollbacks_in_a_row", protection.max_rollbacks_in_a_row);
  add(values, "stragglers.on_straggler", options.stragglers.on_straggler ? "a function" : "none");
  add(values, "stragglers.factor", options.stragglers.factor);
  add(values, "stragglers.patience", options.stragglers.patience);
}

void add_data(NamedValues& values, const DataOptions& data) {
  add(values, "data.split_batches", data.split_batches);
  add(values, "data.even_batches", data.even_batches);
  add(values, "data.dispatch_batches",
      data.dispatch_batches ? (*data.dispatch_batches ? "true" : "false") : "by default");
}

void add_ddp(NamedValues& values, const DistributedDataParallelOptions& ddp) {
  add(values, "ddp.broadcast_buffers", ddp.broadcast_buffers);
  add(values, "ddp.bucket_cap_mb", ddp.bucket_cap_mb);
  add(values, "ddp.find_unused_parameters", ddp.find_unused_parameters);
  add(values, "ddp.comm_hook", static_cast<int>(ddp.comm_hook));
  add(values, "ddp.error_feedback", ddp.error_feedback);
  add(values, "ddp.bucket_hook", ddp.bucket_hook ? "a function" : "none");
  add(values, "ddp.check_replicas_every", ddp.check_replicas_every);
}

// The rest of ZeRO's options is compared where it is used.
void add_axes(NamedValues& values, const AcceleratorOptions& options) {
  const auto& axes = options.parallel;
  add(values, "zero.stage (HORTATOR_ZERO_STAGE)", options.zero.stage.value_or(0));
  add(values, "zero.keep_resident", text::join(options.zero.keep_resident));
  add(values, "parallel.pipeline (HORTATOR_PIPELINE)", axes.pipeline.value_or(1));
  add(values, "parallel.replicate (HORTATOR_REPLICATE)", axes.replicate.value_or(1));
  add(values, "parallel.shard (HORTATOR_SHARD)", axes.shard.value_or(1));
  add(values, "parallel.context (HORTATOR_CONTEXT)", axes.context.value_or(1));
  add(values, "parallel.context_attention (HORTATOR_CONTEXT_ATTENTION)",
      static_cast<int>(axes.context_attention.value_or(ContextAttention::gather)));
  add(values, "parallel.tensor (HORTATOR_TENSOR)", axes.tensor.value_or(1));
  add(values, "parallel.experts (HORTATOR_EXPERTS)", axes.experts.value_or(1));
  add(values, "parallel.plan", describe(axes.plan));
  add(values, "parallel.sequence", axes.sequence);
  add(values, "parallel.strict", axes.strict);
}

void add_checkpoints(NamedValues& values, const CheckpointOptions& checkpoint) {
  add(values, "checkpoint.writer", static_cast<int>(checkpoint.writer));
  add(values, "checkpoint.nodes_per_file", checkpoint.nodes_per_file.value_or(0));
  add(values, "checkpoint.asynchronous", checkpoint.asynchronous);
}

}  // namespace

void require_common(const AcceleratorOptions& options, const mpi::Communicator& host) {
  NamedValues values;
  add_training(values, options);
  add_precision(values, options);
  add_protection(values, options);
  add_data(values, options.data);
  add_ddp(values, options.ddp);
  add_axes(values, options);
  add_checkpoints(values, options.checkpoint);
  std::string all;
  for (const auto& [name, value] : values) all += text::concat(name, '=', value, '\n');
  if (mpi::equal_on_all(host, core::hash(all))) return;
  for (const auto& [name, value] : values) mpi::same_on_all(host, value, name);
}

}  // namespace hortator::accelerator
