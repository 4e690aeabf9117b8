#include "models/tensor_plans.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/architectures.hpp"

namespace hortator::models {
namespace {

using enum TensorDivision;

/// Elements of a head. Queries, keys and values are divided by whole heads.
int head_width(const nlohmann::json& config) {
  if (config.contains("head_dim") && config.at("head_dim").is_number()) return config.at("head_dim").get<int>();
  for (const auto& [width, heads] :
       {std::pair("hidden_size", "num_attention_heads"), {"n_embd", "n_head"}, {"dim", "n_heads"}}) {
    if (config.contains(width) && config.contains(heads))
      return config.at(width).get<int>() / config.at(heads).get<int>();
  }
  return 1;
}

/// Whether a parameter's name has the layer, or parameter, `pattern` in it.
bool has_layer(const torch::nn::Module& module, const std::string& pattern) {
  for (const auto& item : module.named_parameters()) {
    const auto name = "." + item.key() + ".";
    if (name.find("." + pattern + ".") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TensorRule by_heads(std::string pattern, TensorDivision division, int width) {
  return {.pattern = std::move(pattern), .division = division, .unit = width};
}

TensorRule by_shared_heads(std::string pattern, int width) {
  auto rule = by_heads(std::move(pattern), columns, width);
  rule.or_replicate = true;
  return rule;
}

TensorRule by_vocabulary(std::string pattern) {
  return {.pattern = std::move(pattern), .division = vocabulary, .or_replicate = true};
}

TensorRule transposed(TensorRule rule, int blocks) {
  rule.transposed = true;
  rule.blocks = blocks;
  return rule;
}

TensorPlan encoder_plan(const EncoderNames& names, int head) {
  TensorPlan plan = {by_heads(names.query, columns, head),
                     by_heads(names.key, columns, head),
                     by_heads(names.value, columns, head),
                     by_heads(names.out, rows, head),
                     {names.up, columns},
                     {names.down, rows}};
  for (const auto* name : names.vocabulary) plan.push_back(by_vocabulary(name));
  return plan;
}

// Heads differ between models of one family, and tied ones have no layer of their own.
TensorPlan PretrainedModel::tensor_plan() const {
  const auto* architecture = find_architecture(config().architecture);
  if (architecture == nullptr || architecture->plan == nullptr) return {};
  auto plan = architecture->plan(head_width(nlohmann::json::parse(config().json)));
  std::erase_if(plan, [&](const TensorRule& rule) { return !has_layer(*this, rule.pattern); });
  return plan;
}

}  // namespace hortator::models
