#include <algorithm>
#include <array>
#include <cmath>
#include <hortator/interop/deepspeed.hpp>

#include "accelerator/interop/deepspeed/entries.hpp"
#include "accelerator/training/training.hpp"
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
    "data_types.",
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
    "zero_optimization.sub_group_size",
    "zero_optimization.use_multi_rank_bucket_allreduce",
});

/// The offload target of a section: "none", "cpu", or "nvme" with a folder.
std::filesystem::path offloaded_to(DeepspeedEntries& entries, const std::string& section) {
  const auto device = entries.text(section + ".device", R"("none", "cpu" or "nvme" is needed)");
  const auto folder = entries.text(section + ".nvme_path", "a folder is needed");
  if (device.empty() || device == "none") return {};
  if (device == "cpu") return "cpu";
  if (device == "nvme" && !folder.empty()) return folder;
  throw UsageError({.what = text::concat(entries.file(), ": ", section, ".device is ", text::quote(device),
                                         folder.empty() ? " without a nvme_path" : ""),
                    .why = "what is offloaded has to go somewhere",
                    .hint = R"(set it to "none", to "cpu", or to "nvme" with a nvme_path)"});
}

void read_zero(DeepspeedEntries& entries, AcceleratorOptions& options) {
  if (const auto stage = entries.count("zero_optimization.stage", 0)) options.zero.stage = static_cast<int>(*stage);
  if (const auto ranks = entries.count("zero_optimization.zero_hpz_partition_size", 1); ranks && *ranks > 1)
    options.zero.shard_group = static_cast<int>(*ranks);
  if (auto place = offloaded_to(entries, "zero_optimization.offload_optimizer"); !place.empty())
    options.zero.offload_optimizer = std::move(place);
  if (auto place = offloaded_to(entries, "zero_optimization.offload_param"); !place.empty())
    options.zero.offload_parameters = std::move(place);
}

void read_precision(DeepspeedEntries& entries, AcceleratorOptions& options) {
  const auto fp16 = entries.onoff("fp16.enabled");
  const auto bf16 = entries.onoff("bf16.enabled");
  if (fp16.value_or(false) && bf16.value_or(false))
    throw UsageError({.what = entries.file() + ": fp16 and bf16 are both enabled", .hint = "enable one of them"});
  if (fp16.value_or(false)) options.mixed_precision = Precision::fp16;
  if (bf16.value_or(false)) options.mixed_precision = Precision::bf16;
  if (const auto power = entries.number("fp16.initial_scale_power")) options.grad_scaler.init_scale = std::exp2(*power);
  if (const auto window = entries.count("fp16.loss_scale_window", 1)) options.grad_scaler.growth_interval = *window;
  if (const auto scale = entries.number("fp16.loss_scale"); scale && *scale > 0) {
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

bool has_no_effect(const std::string& path) {
  return std::any_of(without_effect.begin(), without_effect.end(), [&](std::string_view known) {
    return known.ends_with('.') ? path.starts_with(known) : path == known;
  });
}

/// "train_batch_size is 32, the run has 64"
void compare_numbers(std::vector<std::string>& problems, const char* name, std::optional<std::int64_t>& said,
                     std::int64_t actual) {
  if (said && *said != actual) problems.push_back(text::concat(name, " is ", *said, ", the run has ", actual));
  said = actual;
}

}  // namespace

void DeepspeedConfig::fill(const Accelerator& accelerator, std::int64_t batch_size) {
  std::vector<std::string> problems;
  const auto steps = accelerator.gradient_accumulation_steps();
  std::optional<std::int64_t> said = options.gradient_accumulation_steps;
  compare_numbers(problems, "gradient_accumulation_steps", said, steps);
  compare_numbers(problems, "train_micro_batch_size_per_gpu", train_micro_batch_size_per_gpu, batch_size);
  compare_numbers(problems, "train_batch_size", train_batch_size,
                  batch_size * steps * accelerator::Training::of(accelerator).data().size());
  if (!problems.empty()) {
    throw UsageError({.what = "The DeepSpeed configuration does not fit the run: " + text::join(problems, "; "),
                      .why = "it would not be the training that was asked for",
                      .hint = "say \"auto\" in the file, or change the run"});
  }
  if (gradient_clipping) {
    log::info("the DeepSpeed configuration clips gradients at ", *gradient_clipping,
              ": here the loop does, by accelerator.clip_grad_norm_(model.parameters(), *config.gradient_clipping)");
  }
  if (!ignored.empty()) log::info("without effect here, of the DeepSpeed configuration: ", text::join(ignored));
  if (!unknown.empty() && accelerator.is_main_process())
    log::warn("unknown entries in the DeepSpeed configuration: ", text::join(unknown));
}

DeepspeedConfig read_deepspeed(const std::filesystem::path& file, const AcceleratorOptions& run) {
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
  read_zero(entries, config.options);
  read_precision(entries, config.options);
  read_communication(entries, config.options);
  if (const auto steps = entries.count("gradient_accumulation_steps", 1))
    config.options.gradient_accumulation_steps = *steps;
  config.gradient_clipping = entries.number("gradient_clipping");
  config.train_micro_batch_size_per_gpu = entries.count("train_micro_batch_size_per_gpu", 1);
  config.train_batch_size = entries.count("train_batch_size", 1);
  for (const auto& path : entries.unread()) (has_no_effect(path) ? config.ignored : config.unknown).push_back(path);
  return config;
}

}  // namespace hortator
