#include "tools/command_line/accelerate_options.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

using launching::AccelerateName;
using launching::Support;

// Whether the option depends on others.
bool is_kept(std::string_view name) {
  return (name.starts_with("fsdp_") && name != "fsdp_activation_checkpointing_offload") ||
         name.starts_with("offload_") || name == "deepspeed_config_file" || name.starts_with("megatron_lm_");
}

}  // namespace

void AccelerateOptions::take(const AccelerateName& row, const TypedOption& option) {
  const auto& typed = option.spelling;
  if (row.support == Support::refused && !is_unused(row, option)) {
    throw UsageError({.what = typed + " of Accelerate is not supported", .why = std::string(row.text)});
  }
  if (row.name == "use_fsdp") return select_sharding(fsdp_, typed);
  if (row.name == "use_deepspeed") return select_sharding(deepspeed_, typed);
  if (row.name == "use_megatron_lm") return select_sharding(megatron_, typed);
  if (is_kept(row.name)) return keep(row, option);
  if (row.support == Support::honoured) return put(row, option);
  const bool has_value = !option.value && !launching::is_accelerate_switch(row.name);
  if (has_value && !reader_.is_at_end()) reader_.next();
  arguments_.note(typed, std::string(row.text));
}

bool AccelerateOptions::is_unused(const AccelerateName& row, const TypedOption& option) const {
  if (option.value) return launching::is_unused_in_accelerate(row, *option.value);
  const auto* next = launching::is_accelerate_switch(row.name) ? nullptr : reader_.peek();
  return next != nullptr && launching::is_unused_in_accelerate(row, *next);
}

void AccelerateOptions::select_sharding(std::string& chosen, const std::string& typed) {
  chosen = typed;
  for (const auto* other : {&fsdp_, &deepspeed_, &megatron_}) {
    if (other != &chosen && !other->empty())
      throw UsageError({.what = text::concat(*other, " and ", typed, " exclude each other"), .hint = "leave one out"});
  }
}

void AccelerateOptions::keep(const AccelerateName& row, const TypedOption& option) {
  kept_[std::string(row.name)] = {reader_.value_of(option), option.spelling};
  const bool is_read = row.name == "fsdp_version" || row.name == "fsdp_transformer_layer_cls_to_wrap";
  if (row.support == Support::noted && !is_read) arguments_.note(option.spelling, std::string(row.text));
}

void AccelerateOptions::put(const AccelerateName& row, const TypedOption& option) {
  const auto& typed = option.spelling;
  if (row.key.empty()) return arguments_.add(option.argument);
  const auto& key = launching::find_key(row.key, "");
  if (key.kind == launching::KeyKind::onoff) return arguments_.add_switch("--" + launching::flag_of(key));
  const auto value = reader_.value_of(option);
  if (!arguments_.has_flag(key)) {
    return value == "all" ? arguments_.note(typed, std::string(row.text)) : arguments_.add_at_launch("", value, typed);
  }
  const auto translated = launching::value_from_accelerate(row, value);
  if (!translated && key.kind != launching::KeyKind::choice) launching::check_values(key, {value}, typed + ": ");
  if (!translated) {
    throw UsageError(
        {.what = text::concat(typed, ": ", text::quote(value), " is not supported"), .why = std::string(row.text)});
  }
  if (launching::is_accelerate_axis(row)) {
    if (*translated == "1") return;  // it sets nothing
    refuse_second_axis(row, typed);
  }
  arguments_.put(key, *translated, typed);
}

// Two options of Accelerate that set one axis exclude each other there.
void AccelerateOptions::refuse_second_axis(const AccelerateName& row, const std::string& typed) {
  const auto [first, is_first] = axes_.emplace(row.key, typed);
  if (is_first || first->second == typed) return;
  throw UsageError(
      {.what = text::concat(first->second, " and ", typed, " exclude each other"),
       .why = "context and sequence parallelism are one axis here, and Accelerate takes one of them",
       .hint = text::concat("pass one of them, or --", launching::flag_of(launching::find_key(row.key, "")))});
}

void AccelerateOptions::note_stage(const std::string& stage, const std::string& typed) {
  if (stage.size() == 1 && stage[0] >= '0' && stage[0] <= '3') kept_["zero_stage"] = {stage, typed};
}

bool AccelerateOptions::is_any_kept(std::string_view prefix) const {
  return std::ranges::any_of(kept_, [&](const auto& one) { return one.first.starts_with(prefix); });
}

void AccelerateOptions::finish() {
  if (!fsdp_.empty() || is_any_kept("fsdp_")) add_plan(launching::plan_fsdp(kept_, fsdp_));
  if (!deepspeed_.empty() || is_any_kept("offload_") || is_any_kept("deepspeed_"))
    add_plan(launching::plan_deepspeed(kept_, deepspeed_));
  if (!megatron_.empty() || is_any_kept("megatron_lm_")) add_plan(launching::plan_megatron(kept_, megatron_));
}

// The stage that an option selects without naming one yields to that of a settings file.
std::string AccelerateOptions::stage_of(const launching::SettingValue& stage) const {
  if (stage.origin == deepspeed_) return "DEEPSPEED";
  return stage.origin == fsdp_ ? "FSDP" : stage.values.front();
}

void AccelerateOptions::add_plan(const launching::ShardingPlan& plan) {
  for (const auto& [name, reason] : plan.refused)
    throw UsageError({.what = text::concat("--", name, " of Accelerate is not supported"), .why = reason});
  for (const auto& [name, reason] : plan.unused) arguments_.note("--" + name, reason);
  for (const auto& [key, value] : plan.layer) {
    const bool may_be_given = key == "zero_stage" || key == "gradient_clipping";
    if (may_be_given && arguments_.sets(launching::flag_of(launching::find_key(key, "")))) continue;
    arguments_.set(key, key == "zero_stage" ? stage_of(value) : value.values.front(), value.origin);
  }
}

}  // namespace hortator::tools
