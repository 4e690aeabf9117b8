#include "launch/settings/accelerate_sharding.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <hortator/error.hpp>
#include <optional>

#include "core/text/pattern.hpp"
#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

constexpr std::array<std::string_view, 5> strategies = {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD",
                                                        "HYBRID_SHARD_ZERO2"};

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

class Planner {
 public:
  Planner(const AccelerateValues& given, std::string selected_by)
      : given_(given), selected_by_(std::move(selected_by)) {}

  ShardingPlan fsdp() && {
    const auto stage = fsdp_stage();
    if (stage) set("zero_stage", *stage);
    offload_all(stage ? stage->text : "3");
    ignore();
    recompute();
    return std::move(plan_);
  }

  ShardingPlan deepspeed() && {
    if (find("deepspeed_config_file") != nullptr) return std::move(*this).by_file();
    const auto stage = deepspeed_stage();
    if (stage) set("zero_stage", *stage);
    const int number = stage ? stage->text[0] - '0' : 3;
    offload("offload_optimizer", "offload_optimizer_device", "offload_optimizer_nvme_path", number, 1);
    offload("offload_parameters", "offload_param_device", "offload_param_nvme_path", number, 3);
    take_checked("gradient_accumulation_steps");
    clip("gradient_clipping");
    return std::move(plan_);
  }

  ShardingPlan megatron() && {
    take_degree("megatron_lm_tp_degree", "tensor");
    take_degree("megatron_lm_context_parallel_size", "context");
    take_degree("megatron_lm_expert_model_parallel_size", "experts");
    if (take_degree("megatron_lm_pp_degree", "pipeline")) {
      take_degree("megatron_lm_num_micro_batches", "micro_batches");
    } else {
      leave_out("megatron_lm_num_micro_batches", "one stage computes whole batches");
    }
    if (const auto* value = on("megatron_lm_use_distributed_optimizer")) set("zero_stage", {"1", value->origin});
    if (const auto* value = on("megatron_lm_recompute_activations")) set("recompute_layers", {"all", value->origin});
    clip("megatron_lm_gradient_clipping");
    return std::move(plan_);
  }

 private:
  // Null if it is missing or means "not set".
  const AccelerateValue* find(std::string_view name) const {
    const auto found = given_.find(name);
    return found == given_.end() || is_unset_in_accelerate(found->second.text) ? nullptr : &found->second;
  }

  void set(std::string_view key, const AccelerateValue& value) {
    plan_.layer[std::string(key)] = {{value.text}, value.origin};
  }
  void refuse(std::string_view name, std::string reason) { plan_.refused[std::string(name)] = std::move(reason); }
  void leave_out(std::string_view name, std::string reason) {
    if (given_.contains(name)) plan_.unused[std::string(name)] = std::move(reason);
  }

  std::optional<AccelerateValue> by_default(const char* stage) const {
    return selected_by_.empty() ? std::nullopt : std::optional<AccelerateValue>({stage, selected_by_});
  }

  // A number of FSDP's is 1 for the first strategy; a bool stands for the two that version 2 has.
  std::optional<AccelerateValue> strategy(std::string_view name) {
    const auto& value = given_.find(name)->second;
    auto text = upper(value.text);
    long long number = 0;
    if (text::parse_integer(text, number) && number >= 1 && number <= 5)
      text = strategies.at(static_cast<std::size_t>(number - 1));
    const auto is_full = text::parse_bool(text);
    if (is_full) text = *is_full ? "FULL_SHARD" : "SHARD_GRAD_OP";
    const auto* const known = std::ranges::find(strategies, text);
    if (known == strategies.end()) {
      refuse(name, text::concat("expected true, false or one of ", text::join(strategies), ", got ",
                                text::quote(value.text)));
      return {};
    }
    const bool is_hybrid = text.starts_with("HYBRID");
    const auto* const stage = text == "FULL_SHARD" ? "3" : text == "SHARD_GRAD_OP" ? "2" : "0";
    return AccelerateValue{is_hybrid ? text : stage, value.origin};
  }

  bool is_given(std::string_view name) const {
    const auto found = given_.find(name);
    return found != given_.end() && !found->second.text.empty() && lower(found->second.text) != "none";
  }

  std::optional<AccelerateValue> fsdp_stage() {
    const auto version = given_.find("fsdp_version");
    if (version != given_.end() && version->second.text != "1" && version->second.text != "2") {
      refuse("fsdp_version", text::concat("expected 1 or 2, got ", text::quote(version->second.text)));
      return {};
    }
    const bool is_second = version != given_.end() && version->second.text == "2";
    if (is_second) leave_out("fsdp_sharding_strategy", "version 2 of FSDP is configured by fsdp_reshard_after_forward");
    if (!is_second && is_given("fsdp_sharding_strategy")) return strategy("fsdp_sharding_strategy");
    if (!is_given("fsdp_reshard_after_forward")) return by_default("3");
    auto stage = strategy("fsdp_reshard_after_forward");
    const auto& typed = given_.find("fsdp_reshard_after_forward")->second.text;
    if (is_second && stage && !text::parse_bool(typed)) {
      refuse("fsdp_reshard_after_forward",
             text::concat("version 2 of FSDP takes true or false, got ", text::quote(typed)));
      return {};
    }
    return stage;
  }

  // FSDP offloads parameters, gradients and the optimizer's state together.
  void offload_all(const std::string& stage) {
    const auto* value = on("fsdp_offload_params");
    if (value == nullptr) return;
    if (stage == "0") return refuse("fsdp_offload_params", "NO_SHARD has no shards that could be offloaded");
    const bool shards_parameters = stage == "3" || stage == "HYBRID_SHARD";
    set("offload_optimizer", {"cpu", value->origin});
    if (shards_parameters) set("offload_parameters", {"cpu", value->origin});
  }

  void ignore() {
    const auto* value = find("fsdp_ignored_modules");
    if (value == nullptr) return;
    if (const auto names = text::names_of_expression(value->text)) return set("zero_ignore", {*names, value->origin});
    refuse("fsdp_ignored_modules", text::concat("expected names of modules with .* and |, got ",
                                                text::quote(value->text), "; name them in zero.ignore in the program"));
  }

  void recompute() {
    const auto* value = on("fsdp_activation_checkpointing");
    if (value == nullptr) return;
    const auto* classes = find("fsdp_transformer_layer_cls_to_wrap");
    set("recompute_layers", {classes != nullptr ? classes->text : "all", value->origin});
  }

  // The entry if it is switched on; null if it is off or missing.
  const AccelerateValue* on(std::string_view name) {
    const auto* value = find(name);
    if (value == nullptr || text::parse_bool(value->text)) return value;
    refuse(name, text::concat("expected true or false, got ", text::quote(value->text)));
    return nullptr;
  }

  std::optional<AccelerateValue> deepspeed_stage() {
    const auto stage = given_.find("zero_stage");
    if (stage == given_.end() || lower(stage->second.text) == "none" || stage->second.text.empty())
      return by_default("2");
    const auto& text = stage->second.text;
    if (text.size() == 1 && text[0] >= '0' && text[0] <= '3') return stage->second;
    refuse("zero_stage", text::concat("expected a stage from 0 to 3, got ", text::quote(text)));
    return {};
  }

  void offload(std::string_view key, std::string_view device, std::string_view path, int stage, int min_stage) {
    const auto* value = find(device);
    const auto* folder = find(path);
    if (value == nullptr) return leave_out(path, "nothing is offloaded there");
    const auto name = lower(value->text);
    if (name != "cpu" && name != "nvme")
      return refuse(device, text::concat("expected none, cpu or nvme, got ", text::quote(value->text)));
    if (name == "nvme" && folder == nullptr) return refuse(device, text::concat("nvme needs a folder: set ", path));
    if (stage < min_stage)
      return leave_out(device, text::concat("DeepSpeed has no shards of it to offload at stage ", stage));
    if (name == "cpu") leave_out(path, "the device is cpu");
    set(key, {name == "cpu" ? name : folder->text, value->origin});
  }

  // Sets the setting of the same name.
  void take_checked(std::string_view name) {
    const auto* value = find(name);
    if (value != nullptr) check_and_set(name, name, *value);
  }

  // A number of ranks or parts; 1 sets nothing. Whether it is set.
  bool take_degree(std::string_view name, std::string_view key) {
    const auto* value = find(name);
    if (value == nullptr || value->text == "1") return leave_out(name, "not given"), false;
    return check_and_set(name, key, *value), true;
  }

  void check_and_set(std::string_view name, std::string_view key, const AccelerateValue& value) {
    try {
      check_values(find_key(key, ""), {value.text}, "");
      set(key, value);
    } catch (const UsageError& error) {
      refuse(name, error.what());
    }
  }

  // Accelerate clips at 1 where the options of DeepSpeed or Megatron-LM, or a file's "auto", leave it open. A file
  // without the key does not clip, and neither does 0.
  void clip(std::string_view name) {
    const auto found = given_.find(name);
    const bool is_missing = found == given_.end() || found->second.text.empty();
    if (is_missing && selected_by_.empty()) return;
    auto value = is_missing ? AccelerateValue{"auto", selected_by_} : found->second;
    if (text::parse_bool(value.text) == false) value.text = "0";
    check_and_set(name, "gradient_clipping", value);
  }

  // Accelerate refuses entries beside the file that the file decides.
  ShardingPlan by_file() && {
    set("deepspeed_config", *find("deepspeed_config_file"));
    for (const auto* name :
         {"zero_stage", "offload_optimizer_device", "offload_param_device", "offload_optimizer_nvme_path",
          "offload_param_nvme_path", "gradient_accumulation_steps", "gradient_clipping", "zero3_save_16bit_model"}) {
      if (is_given(name)) refuse(name, "deepspeed_config_file decides it: set it in that file, and remove it here");
    }
    return std::move(plan_);
  }

  const AccelerateValues& given_;
  std::string selected_by_;
  ShardingPlan plan_;
};

}  // namespace

bool is_unset_in_accelerate(std::string_view value) {
  const auto text = lower(std::string(value));
  return text.empty() || text == "none" || text == "null" || text == "auto" || text::parse_bool(text) == false;
}

ShardingPlan plan_fsdp(const AccelerateValues& given, const std::string& selected_by) {
  return Planner(given, selected_by).fsdp();
}

ShardingPlan plan_deepspeed(const AccelerateValues& given, const std::string& selected_by) {
  return Planner(given, selected_by).deepspeed();
}

ShardingPlan plan_megatron(const AccelerateValues& given, const std::string& selected_by) {
  return Planner(given, selected_by).megatron();
}

}  // namespace hortator::launching
