#include "launch/settings/deepspeed_file.hpp"

#include <cmath>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "launch/settings/accelerate_sharding.hpp"

namespace hortator::launching {
namespace {

using Json = nlohmann::json;

class DeepspeedFile {
 public:
  DeepspeedFile(const Json& root, const std::string& file) : root_(root), file_(file) {}

  Layer settings() {
    require_sharding();
    AccelerateValues values;
    for (const auto& [path, name] : {std::pair("zero_optimization.stage", "zero_stage"),
                                     {"zero_optimization.offload_optimizer.device", "offload_optimizer_device"},
                                     {"zero_optimization.offload_optimizer.nvme_path", "offload_optimizer_nvme_path"},
                                     {"zero_optimization.offload_param.device", "offload_param_device"},
                                     {"zero_optimization.offload_param.nvme_path", "offload_param_nvme_path"},
                                     {"gradient_accumulation_steps", "gradient_accumulation_steps"},
                                     {"gradient_clipping", "gradient_clipping"}}) {
      if (const auto text = value(path)) values[name] = {*text, origin(path)};
    }
    // Names of old versions.
    if (is_on("zero_optimization.cpu_offload"))
      values.try_emplace("offload_optimizer_device", AccelerateValue{"cpu", origin("zero_optimization.cpu_offload")});
    if (is_on("zero_optimization.cpu_offload_params"))
      values.try_emplace("offload_param_device",
                         AccelerateValue{"cpu", origin("zero_optimization.cpu_offload_params")});
    settle_stage(values);
    if (is_auto("gradient_clipping")) values["gradient_clipping"] = {"auto", origin("gradient_clipping")};
    auto plan = plan_deepspeed(values, "");
    for (const auto& [name, reason] : plan.refused)
      throw UsageError({.what = text::concat(values.at(name).origin, ": ", reason)});
    set_precision(plan.layer);
    return std::move(plan.layer);
  }

 private:
  const Json* node(std::string_view path) const {
    const auto* at = &root_;
    for (const auto& part : text::split(std::string(path), '.')) {
      if (!at->is_object() || !at->contains(part)) return nullptr;
      at = &at->at(part);
    }
    return at;
  }

  std::string origin(std::string_view path) const { return text::concat(file_, ": ", path); }

  // The text of an entry; nothing if it is missing, null or "auto".
  std::optional<std::string> value(std::string_view path) const {
    const auto* at = node(path);
    if (at == nullptr || at->is_null()) return {};
    if (at->is_string()) return is_auto(path) ? std::nullopt : std::optional(at->get<std::string>());
    if (at->is_number_float() && at->get<double>() == std::trunc(at->get<double>()) && at->get<double>() < 1e15)
      return std::to_string(static_cast<long long>(at->get<double>()));  // 1e2 steps
    if (at->is_primitive()) return at->dump();
    throw UsageError({.what = text::concat(origin(path), " is not one value"), .hint = "write a number or a name"});
  }

  bool is_auto(std::string_view path) const {
    const auto* at = node(path);
    return at != nullptr && at->is_string() && at->get<std::string>() == "auto";
  }

  bool is_on(std::string_view path) const {
    const auto text = value(path);
    if (!text) return false;
    if (const auto on = text::parse_bool(*text)) return *on;
    throw UsageError(
        {.what = text::concat(origin(path), ": expected true, false or \"auto\", got ", text::quote(*text))});
  }

  void require_sharding() const {
    const auto* zero = node("zero_optimization");
    if (zero != nullptr && zero->is_object()) return;
    throw UsageError({.what = text::concat(file_, ": zero_optimization ",
                                           zero == nullptr ? "is missing" : "is not a map of entries"),
                      .why = "Accelerate accepts DeepSpeed configurations with this section only",
                      .hint = R"(add "zero_optimization": {"stage": 0} for a run without sharding)"});
  }

  // Without a stage, DeepSpeed does not shard; Accelerate replaces "auto" by 2.
  void settle_stage(AccelerateValues& values) const {
    if (values.contains("zero_stage")) return;
    constexpr auto path = "zero_optimization.stage";
    values["zero_stage"] = {is_auto(path) ? "2" : "0", origin(path)};
  }

  void set_precision(Layer& layer) const {
    std::vector<std::string> on;
    for (const auto* path : {"fp16.enabled", "bf16.enabled", "bfloat16.enabled", "torch_autocast.enabled"}) {
      if (is_on(path)) on.emplace_back(path);
    }
    if (on.size() > 1)
      throw UsageError(
          {.what = text::concat(file_, ": ", text::join(on, " and "), " are both on"), .hint = "enable one of them"});
    if (on.empty()) return;
    const bool is_autocast = on.front().starts_with("torch");
    const auto type = is_autocast ? value("torch_autocast.dtype").value_or("bfloat16") : on.front();
    const bool is_half = type.starts_with("fp16") || type == "float16" || type == "torch.float16";
    layer["mixed_precision"] = {{is_half ? "fp16" : "bf16"}, origin(on.front())};
  }

  const Json& root_;
  const std::string& file_;
};

}  // namespace

Layer read_deepspeed_settings(std::string_view text, const std::string& file) {
  const auto root = core::parse_record(text);
  if (root.is_discarded())
    throw UsageError({.what = file + " is not valid JSON", .why = "it is read as a configuration of DeepSpeed"});
  return DeepspeedFile(root, file).settings();
}

void add_deepspeed_settings(Layer& layer, const Layer& of_file) {
  for (const auto& [key, value] : of_file) layer.try_emplace(key, value);
}

}  // namespace hortator::launching
