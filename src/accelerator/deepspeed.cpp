#include <algorithm>
#include <array>
#include <cmath>
#include <hortator/deepspeed.hpp>
#include <map>

#include "base/log.hpp"
#include "base/text.hpp"
#include "io/raw_file.hpp"
#include "io/strict_json.hpp"

namespace hortator {
namespace {

using io::JsonValue;

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 24;

// What the file may say without effect here: sections end with a dot.
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

/// The file's entries by their paths, sections taken apart.
class Entries {
 public:
  Entries(const JsonValue& root, std::string file) : file_(std::move(file)) { add(root, ""); }

  const std::string& file() const { return file_; }
  /// Null where it is not there; it counts as read.
  const JsonValue* take(const std::string& path) {
    const auto found = values_.find(path);
    if (found == values_.end()) return nullptr;
    read_.push_back(path);
    return &found->second;
  }
  std::vector<std::string> rest() const {
    std::vector<std::string> rest;
    for (const auto& [path, value] : values_) {
      if (std::find(read_.begin(), read_.end(), path) == read_.end()) rest.push_back(path);
    }
    return rest;
  }

 private:
  void add(const JsonValue& value, const std::string& path) {
    const auto* object = std::get_if<JsonValue::Object>(&value.content);
    if (object == nullptr) {
      values_.insert_or_assign(path, value);
      return;
    }
    for (const auto& [name, member] : *object) add(member, path.empty() ? name : path + "." + name);
  }

  std::string file_;
  std::map<std::string, JsonValue> values_;
  std::vector<std::string> read_;
};

bool is_auto(const JsonValue& value) {
  const auto* words = std::get_if<std::string>(&value.content);
  return words != nullptr && *words == "auto";
}

[[noreturn]] void refuse_entry(const Entries& entries, const std::string& path, const JsonValue& value,
                               const char* expected) {
  throw UsageError({.what = text::concat(entries.file(), ": ", path, " is ", value.described()), .hint = expected});
}

std::optional<double> number(Entries& entries, const std::string& path) {
  const auto* value = entries.take(path);
  if (value == nullptr || is_auto(*value)) return {};
  if (const auto* one = std::get_if<std::uint64_t>(&value->content)) return static_cast<double>(*one);
  if (const auto* one = std::get_if<std::int64_t>(&value->content)) return static_cast<double>(*one);
  if (const auto* one = std::get_if<double>(&value->content)) return *one;
  refuse_entry(entries, path, *value, "a number is needed, or \"auto\"");
}

std::optional<std::int64_t> count(Entries& entries, const std::string& path, std::int64_t least) {
  const auto value = number(entries, path);
  if (!value) return {};
  if (*value >= static_cast<double>(least) && *value == std::floor(*value)) return static_cast<std::int64_t>(*value);
  throw UsageError({.what = text::concat(entries.file(), ": ", path, " is ", *value),
                    .hint = text::concat("a whole number from ", least, " on is needed, or \"auto\"")});
}

std::optional<bool> onoff(Entries& entries, const std::string& path) {
  const auto* value = entries.take(path);
  if (value == nullptr || is_auto(*value)) return {};
  if (const auto* one = std::get_if<bool>(&value->content)) return *one;
  refuse_entry(entries, path, *value, "true or false is needed, or \"auto\"");
}

std::string words_of(Entries& entries, const std::string& path, const char* expected) {
  const auto* value = entries.take(path);
  if (value == nullptr) return {};
  if (const auto* words = std::get_if<std::string>(&value->content)) return *words;
  refuse_entry(entries, path, *value, expected);
}

/// Where it goes: "none", "cpu", or "nvme" with a folder.
std::filesystem::path offloaded_to(Entries& entries, const std::string& section) {
  const auto device = words_of(entries, section + ".device", "\"none\", \"cpu\" or \"nvme\" is needed");
  const auto folder = words_of(entries, section + ".nvme_path", "a folder is needed");
  if (device.empty() || device == "none") return {};
  if (device == "cpu") return "cpu";
  if (device == "nvme" && !folder.empty()) return folder;
  throw UsageError({.what = text::concat(entries.file(), ": ", section, ".device is ", text::quote(device),
                                         folder.empty() ? " without a nvme_path" : ""),
                    .why = "what is offloaded has to go somewhere",
                    .hint = "set it to \"none\", to \"cpu\", or to \"nvme\" with a nvme_path"});
}

void read_zero(Entries& entries, AcceleratorOptions& options) {
  if (const auto stage = count(entries, "zero_optimization.stage", 0)) options.zero.stage = static_cast<int>(*stage);
  if (const auto ranks = count(entries, "zero_optimization.zero_hpz_partition_size", 1); ranks && *ranks > 1)
    options.zero.shard_group = static_cast<int>(*ranks);
  if (auto place = offloaded_to(entries, "zero_optimization.offload_optimizer"); !place.empty())
    options.zero.offload_optimizer = std::move(place);
  if (auto place = offloaded_to(entries, "zero_optimization.offload_param"); !place.empty())
    options.zero.offload_parameters = std::move(place);
}

void read_precision(Entries& entries, AcceleratorOptions& options) {
  const auto fp16 = onoff(entries, "fp16.enabled");
  const auto bf16 = onoff(entries, "bf16.enabled");
  if (fp16.value_or(false) && bf16.value_or(false))
    throw UsageError({.what = entries.file() + ": fp16 and bf16 are both enabled", .hint = "enable one of them"});
  if (fp16.value_or(false)) options.mixed_precision = Precision::fp16;
  if (bf16.value_or(false)) options.mixed_precision = Precision::bf16;
  if (const auto power = number(entries, "fp16.initial_scale_power"))
    options.grad_scaler.init_scale = std::exp2(*power);
  if (const auto window = count(entries, "fp16.loss_scale_window", 1)) options.grad_scaler.growth_interval = *window;
  if (const auto scale = number(entries, "fp16.loss_scale"); scale && *scale > 0) {
    throw UsageError({.what = text::concat(entries.file(), ": fp16.loss_scale is ", *scale),
                      .why = "losses are scaled by a number that follows the gradients",
                      .hint = "set it to 0, and fp16.initial_scale_power to where it begins"});
  }
}

/// In which gradients travel; null: in their own.
void read_communication(Entries& entries, AcceleratorOptions& options) {
  constexpr auto path = "communication_data_type";
  constexpr auto expected = R"("fp32", "fp16", "bf16" or null is needed)";
  const auto* value = entries.take(path);
  if (value == nullptr || std::holds_alternative<std::nullptr_t>(value->content)) return;
  const auto* words = std::get_if<std::string>(&value->content);
  const auto type = words != nullptr ? *words : "";
  if (type == "fp32") {
    options.ddp.comm_hook = DDPCommunicationHookType::fp32;
  } else if (type == "fp16") {
    options.ddp.comm_hook = DDPCommunicationHookType::fp16;
  } else if (type == "bf16" || type == "bfp16") {
    options.ddp.comm_hook = DDPCommunicationHookType::bf16;
  } else {
    refuse_entry(entries, path, *value, expected);
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
  compare_numbers(problems, "train_batch_size", train_batch_size, batch_size * steps * accelerator.num_processes());
  if (!problems.empty()) {
    throw UsageError({.what = "the DeepSpeed configuration does not fit the run: " + text::join(problems, "; "),
                      .why = "it would not be the training that was asked for",
                      .hint = "say \"auto\" in the file, or change the run"});
  }
  if (!ignored.empty()) log::info("without effect here, of the DeepSpeed configuration: ", text::join(ignored));
  if (!unknown.empty() && accelerator.is_main_process())
    log::warn("unknown entries in the DeepSpeed configuration: ", text::join(unknown));
}

DeepspeedConfig read_deepspeed(const std::filesystem::path& file, const AcceleratorOptions& run) {
  const auto words = io::read_text(file, most_bytes);
  JsonValue root;
  try {
    io::JsonScanner scanner(words);
    root = scanner.value();
    scanner.end();
  } catch (const io::JsonFault& fault) {
    throw UsageError({.what = text::concat(file.string(), " is no JSON: ", fault.what())});
  }
  if (!std::holds_alternative<JsonValue::Object>(root.content))
    throw UsageError({.what = text::concat(file.string(), " holds ", root.described()), .hint = "a map is needed"});
  Entries entries(root, file.string());
  DeepspeedConfig config{.options = run};
  read_zero(entries, config.options);
  read_precision(entries, config.options);
  read_communication(entries, config.options);
  if (const auto steps = count(entries, "gradient_accumulation_steps", 1))
    config.options.gradient_accumulation_steps = *steps;
  config.gradient_clipping = number(entries, "gradient_clipping");
  config.train_micro_batch_size_per_gpu = count(entries, "train_micro_batch_size_per_gpu", 1);
  config.train_batch_size = count(entries, "train_batch_size", 1);
  for (const auto& path : entries.rest()) (has_no_effect(path) ? config.ignored : config.unknown).push_back(path);
  return config;
}

}  // namespace hortator
