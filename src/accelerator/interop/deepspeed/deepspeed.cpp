#include <algorithm>
#include <array>
#include <cmath>
#include <hortator/interop/deepspeed.hpp>

#include "accelerator/interop/accelerate/launched_sharding.hpp"
#include "accelerator/interop/accelerate/sharding_variables.hpp"
#include "accelerator/interop/deepspeed/deepspeed_file.hpp"
#include "accelerator/interop/deepspeed/entries.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/safetensors/strict_json.hpp"

namespace hortator {
namespace {

using accelerator::DeepspeedEntries;
using formats::JsonValue;

constexpr std::uint64_t max_bytes = std::uint64_t{1} << 24;

// Entries without effect here; sections end with a dot.
constexpr auto without_effect = std::to_array<std::string_view>({
    "activation_checkpointing.",
    "aio.",
    "amp.",
    "autotuning.",
    "comms_logger.",
    "compression_training.",
    "csv_monitor.",
    "curriculum_learning.",
    "data_efficiency.",
    "dump_state",
    "elasticity.",
    "flops_profiler.",
    "memory_breakdown",
    "optimizer.",
    "prescale_gradients",
    "gradient_predivide_factor",
    "scheduler.",
    "steps_per_print",
    "tensorboard.",
    "wall_clock_breakdown",
    "wandb.",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
    "disable_allgather",
    "checkpoint.",
    "compile.",
    "data_types.",
    "hybrid_engine.",
    "msamp.",
    "nebula.",
    "pipeline.",
    "progressive_layer_drop.",
    "quantize_training.",
    "seq_parallel_communication_data_type",
    "sequence_parallel_size",
    "sparse_gradients",
    "tensor_parallel.",
    "torch_autocast.",
    "fp16.fp16_master_weights_and_grads",
    "fp16.auto_cast",
    "fp16.hysteresis",
    "fp16.min_loss_scale",
    "fp16.consecutive_hysteresis",
    "bf16.immediate_grad_update",
    "zero_optimization.allgather_bucket_size",
    "zero_optimization.allgather_partitions",
    "zero_optimization.contiguous_gradients",
    "zero_optimization.elastic_checkpoint",
    "zero_optimization.ignore_unused_parameters",
    "zero_optimization.legacy_stage1",
    "zero_optimization.load_from_fp32_weights",
    "zero_optimization.memory_efficient_linear",
    "zero_optimization.offload_optimizer.",
    "zero_optimization.offload_param.",
    "zero_optimization.overlap_comm",
    "zero_optimization.reduce_bucket_size",
    "zero_optimization.reduce_scatter",
    "zero_optimization.round_robin_gradients",
    "zero_optimization.stage3_gather_16bit_weights_on_model_save",
    "zero_optimization.stage3_max_live_parameters",
    "zero_optimization.stage3_max_reuse_distance",
    "zero_optimization.stage3_param_persistence_threshold",
    "zero_optimization.stage3_prefetch_bucket_size",
    "zero_optimization.stage3_module_granularity_threshold",
    "zero_optimization.stage3_use_all_reduce_for_fetch_params",
    "zero_optimization.zero_quantized_gradients",
    "zero_optimization.zero_quantized_nontrainable_weights",
    "zero_optimization.sub_group_size",
    "zero_optimization.use_multi_rank_bucket_allreduce",
    "zero_optimization.zero_hpz_partition_size",  // a second copy of parameters within a node, to gather them faster
});

/// Entries that change a training when they are on. Sections end with a dot.
struct ChangingEntry {
  std::string_view path;
  const char* instead;
};
constexpr auto changing = std::to_array<ChangingEntry>({
    {"amp.enabled", "use bf16 or fp16"},
    {"compression_training.", "train without quantisation and pruning"},
    {"curriculum_learning.enabled", "give the loader a sampler of your own"},
    {"data_efficiency.enabled", "give the loader a sampler of your own"},
    {"elasticity.enabled", "checkpoints resume on any number of ranks; set the batch size in the program"},
    {"fp16.fp16_master_weights_and_grads", "set zero.fp32_masters = false in the program"},
    {"msamp.enabled", "use bf16"},
    {"progressive_layer_drop.enabled", "drop layers in the model's forward"},
    {"quantize_training.enabled", "train without quantisation"},
    {"zero_optimization.zero_quantized_gradients", "communication_data_type bf16 sends gradients in 16 bits"},
    {"zero_optimization.zero_quantized_nontrainable_weights", "zero_quantized_weights gathers all of them in int8"},
});

bool is_one_of(const std::string& path, std::string_view known) {
  return known.ends_with('.') ? path.starts_with(known) : path == known;
}

/// Throws for what would be missed: entries that are on, and degrees of parallelism above 1.
void refuse_changes(DeepspeedEntries& entries) {
  const auto refuse = [&](const std::string& path, const std::string& value, const char* instead) {
    throw UsageError({.what = text::concat(entries.file(), ": ", path, " is ", value),
                      .why = "it changes the training, and does not exist here",
                      .hint = text::concat("leave it out; ", instead)});
  };
  for (const auto& path : entries.unread()) {
    for (const auto& [known, instead] : changing) {
      if (is_one_of(path, known) && entries.is_true(path)) refuse(path, "true", instead);
    }
  }
  if (const auto ranks = entries.count("tensor_parallel.autotp_size", 0).value_or(0); ranks > 1)
    refuse("tensor_parallel.autotp_size", std::to_string(ranks), "set parallel.tensor and a plan, or --tensor");
  if (const auto ranks = entries.count("sequence_parallel_size", 0).value_or(0); ranks > 1)
    refuse("sequence_parallel_size", std::to_string(ranks), "set parallel.context, or --context");
}

/// The offload target of a section: "none", "cpu", or "nvme" with a folder.
std::filesystem::path offloaded_to(DeepspeedEntries& entries, const std::string& section) {
  const auto device = entries.text(section + ".device", R"("none", "cpu" or "nvme" is needed)");
  const auto folder = entries.text(section + ".nvme_path", "a folder is needed");
  if (device.empty() || device == "none" || device == "auto") return {};
  if (device == "cpu") return "cpu";
  if (device == "nvme" && !folder.empty()) return folder;
  throw UsageError({.what = text::concat(entries.file(), ": ", section, ".device is ", text::quote(device),
                                         folder.empty() ? " without a nvme_path" : ""),
                    .why = "what is offloaded has to go somewhere",
                    .hint = R"(set it to "none", to "cpu", or to "nvme" with a nvme_path)"});
}

/// Without an entry, the stage stays open, which is no sharding. "auto" is the launcher's, otherwise 2 as in
/// Accelerate.
void read_stage(DeepspeedEntries& entries, ZeroConfig& zero, const core::Variables& variables) {
  constexpr auto path = "zero_optimization.stage";
  if (const auto stage = entries.count(path, 0)) zero.stage = static_cast<int>(*stage);
  if (!entries.is_automatic(path)) return;
  zero = accelerator::launched_sharding(zero, variables);
  if (zero.stage) return;
  const auto set = accelerator::accelerate_stage(variables);
  zero.stage = set ? zero_config(set->value).stage : 2;
}

void read_zero(DeepspeedEntries& entries, AcceleratorOptions& options, const core::Variables& variables) {
  read_stage(entries, options.zero, variables);
  const auto stage = accelerator::launched_sharding(options.zero, variables).stage.value_or(0);
  if (const auto ranks = entries.count("zero_optimization.mics_shard_size", -1); ranks && *ranks > 1)
    options.zero.shard_group = static_cast<int>(*ranks);
  if (entries.onoff("zero_optimization.zero_quantized_weights").value_or(false)) options.zero.int8_gathers = true;
  const bool old_optimizer = entries.onoff("zero_optimization.cpu_offload").value_or(false);
  const bool old_parameters = entries.onoff("zero_optimization.cpu_offload_params").value_or(false);
  // DeepSpeed offloads shards, which parameters have at stage 3 only.
  if (old_optimizer && stage > 0) options.zero.offload_optimizer = "cpu";
  if (old_parameters && stage == 3) options.zero.offload_parameters = "cpu";
  auto optimizer = offloaded_to(entries, "zero_optimization.offload_optimizer");
  if (!optimizer.empty() && stage > 0) options.zero.offload_optimizer = std::move(optimizer);
  auto parameters = offloaded_to(entries, "zero_optimization.offload_param");
  if (!parameters.empty() && stage == 3) options.zero.offload_parameters = std::move(parameters);
}

void read_precision(DeepspeedEntries& entries, AcceleratorOptions& options) {
  const auto fp16 = entries.onoff("fp16.enabled");
  auto bf16 = entries.onoff("bf16.enabled");
  if (const auto old_name = entries.onoff("bfloat16.enabled")) bf16 = old_name;
  if (fp16.value_or(false) && bf16.value_or(false))
    throw UsageError({.what = entries.file() + ": fp16 and bf16 are both enabled", .hint = "enable one of them"});
  if (fp16.value_or(false)) options.mixed_precision = Precision::fp16;
  if (bf16.value_or(false)) options.mixed_precision = Precision::bf16;
  if (entries.onoff("torch_autocast.enabled").value_or(false)) {
    constexpr auto expected = R"("bfloat16" or "float16" is needed)";
    const auto type = entries.text("torch_autocast.dtype", expected);
    const bool is_half = type == "float16" || type == "fp16" || type == "torch.float16";
    const bool is_bfloat = type.empty() || type == "bfloat16" || type == "bf16" || type == "torch.bfloat16";
    if (!is_half && !is_bfloat)
      throw UsageError(
          {.what = text::concat(entries.file(), ": torch_autocast.dtype is ", text::quote(type)), .hint = expected});
    options.mixed_precision = is_half ? Precision::fp16 : Precision::bf16;
  }
  if (const auto power = entries.number("fp16.initial_scale_power")) options.grad_scaler.init_scale = std::exp2(*power);
  if (const auto window = entries.count("fp16.loss_scale_window", 1)) options.grad_scaler.growth_interval = *window;
  if (const auto scale = entries.number("fp16.loss_scale"); scale && *scale > 0 && fp16.value_or(true)) {
    throw UsageError({.what = text::concat(entries.file(), ": fp16.loss_scale is ", *scale),
                      .why = "losses are scaled by a number that follows the gradients",
                      .hint = "set it to 0, and fp16.initial_scale_power to where it begins"});
  }
}

/// The type in which gradients are sent; null for their own.
void read_communication(DeepspeedEntries& entries, AcceleratorOptions& options) {
  constexpr auto path = "communication_data_type";
  constexpr auto expected = R"("fp32", "fp16", "bf16" or null is needed)";
  const auto* value = entries.take(path);
  if (value == nullptr || std::holds_alternative<std::nullptr_t>(value->content)) return;
  const auto* name = std::get_if<std::string>(&value->content);
  const auto type = name != nullptr ? *name : "";
  if (type == "fp32") {
    options.ddp.comm_hook = DDPCommunicationHookType::fp32;
  } else if (type == "fp16") {
    options.ddp.comm_hook = DDPCommunicationHookType::fp16;
  } else if (type == "bf16" || type == "bfp16") {
    options.ddp.comm_hook = DDPCommunicationHookType::bf16;
  } else {
    entries.refuse(path, *value, expected);
  }
}

/// Nothing where the file does not clip: the entry is missing, or 0.
std::optional<double> read_clipping(DeepspeedEntries& entries, const core::Variables& variables) {
  constexpr auto path = "gradient_clipping";
  const auto norm = entries.number(path);
  if (entries.is_automatic(path)) return accelerator::automatic_clipping(variables);
  if (norm && !(*norm >= 0))
    throw UsageError({.what = text::concat(entries.file(), ": ", path, " is ", *norm),
                      .hint = "use 0, a positive number, or \"auto\""});
  return norm == 0 ? std::nullopt : norm;
}

bool has_no_effect(const std::string& path) {
  return std::any_of(without_effect.begin(), without_effect.end(),
                     [&](std::string_view known) { return is_one_of(path, known); });
}

}  // namespace

DeepspeedConfig read_deepspeed(const std::filesystem::path& file, const AcceleratorOptions& run) {
  return accelerator::read_deepspeed_file(file, run, core::process_variables());
}

DeepspeedConfig accelerator::read_deepspeed_file(const std::filesystem::path& file, const AcceleratorOptions& run,
                                                 const core::Variables& variables) {
  const auto json = formats::read_text(file, max_bytes);
  JsonValue root;
  try {
    root = formats::parse_strict_json(json);
  } catch (const formats::JsonFault& fault) {
    throw UsageError({.what = text::concat(file.string(), " is not valid JSON: ", fault.what())});
  }
  if (!std::holds_alternative<JsonValue::Object>(root.content))
    throw UsageError({.what = text::concat(file.string(), " holds ", root.described()), .hint = "a map is needed"});
  DeepspeedEntries entries(root, file.string());
  DeepspeedConfig config{.options = run};
  read_zero(entries, config.options, variables);
  read_precision(entries, config.options);
  read_communication(entries, config.options);
  if (const auto steps = entries.count("gradient_accumulation_steps", 1))
    config.options.gradient_accumulation_steps = *steps;
  config.gradient_clipping = read_clipping(entries, variables);
  config.train_micro_batch_size_per_gpu = entries.count("train_micro_batch_size_per_gpu", 1);
  config.train_batch_size = entries.count("train_batch_size", 1);
  refuse_changes(entries);
  for (const auto& path : entries.unread()) (has_no_effect(path) ? config.ignored : config.unknown).push_back(path);
  return config;
}

}  // namespace hortator
