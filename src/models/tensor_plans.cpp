// How each family's layers are divided among tensor ranks.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

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

TensorRule by_heads(std::string pattern, TensorDivision division, int width) {
  return {.pattern = std::move(pattern), .division = division, .unit = width};
}

/// Heads that groups of queries share: each rank has all of them where they are too few to be divided.
TensorRule by_shared_heads(std::string pattern, int width) {
  auto rule = by_heads(std::move(pattern), columns, width);
  rule.or_replicate = true;
  return rule;
}

TensorRule tokens(std::string pattern) {
  return {.pattern = std::move(pattern), .division = vocabulary, .or_replicate = true};
}

TensorRule transposed(TensorRule rule, int blocks = 1) {
  rule.transposed = true;
  rule.blocks = blocks;
  return rule;
}

TensorPlan llama_plan(int head) {
  return {by_heads("self_attn.q_proj", columns, head),
          by_shared_heads("self_attn.k_proj", head),
          by_shared_heads("self_attn.v_proj", head),
          by_heads("self_attn.o_proj", rows, head),
          {"mlp.gate_proj", columns},
          {"mlp.up_proj", columns},
          {"mlp.down_proj", rows},
          tokens("embed_tokens"),
          tokens("lm_head")};
}

/// Experts are divided by parallel.experts, not here.
TensorPlan mixtral_plan(int head) {
  auto plan = llama_plan(head);
  std::erase_if(plan, [](const TensorRule& rule) { return rule.pattern.starts_with("mlp."); });
  return plan;
}

TensorPlan gpt2_plan(int head) {
  return {transposed(by_heads("attn.c_attn", columns, head), 3),
          transposed(by_heads("attn.c_proj", rows, head)),
          transposed({"mlp.c_fc", columns}),
          transposed({"mlp.c_proj", rows}),
          tokens("wte"),
          tokens("lm_head")};
}

TensorPlan bert_plan(int head) {
  return {by_heads("attention.self.query", columns, head),
          by_heads("attention.self.key", columns, head),
          by_heads("attention.self.value", columns, head),
          by_heads("attention.output.dense", rows, head),
          {"intermediate.dense", columns},
          {"output.dense", rows},
          tokens("word_embeddings"),
          tokens("cls.predictions.bias"),
          tokens("cls.predictions.decoder")};
}

TensorPlan distilbert_plan(int head) {
  return {by_heads("attention.q_lin", columns, head),
          by_heads("attention.k_lin", columns, head),
          by_heads("attention.v_lin", columns, head),
          by_heads("attention.out_lin", rows, head),
          {"ffn.lin1", columns},
          {"ffn.lin2", rows},
          tokens("word_embeddings"),
          tokens("vocab_projector")};
}

TensorPlan vit_plan(int head) {
  return {by_heads("attention.attention.query", columns, head),
          by_heads("attention.attention.key", columns, head),
          by_heads("attention.attention.value", columns, head),
          by_heads("attention.output.dense", rows, head),
          {"intermediate.dense", columns},
          {"output.dense", rows}};
}

const std::map<std::string_view, TensorPlan (*)(int)>& plans() {
  static const std::map<std::string_view, TensorPlan (*)(int)> all = {
      {"llama", llama_plan}, {"mistral", llama_plan},         {"mixtral", mixtral_plan},
      {"qwen2", llama_plan}, {"qwen3", llama_plan},           {"gpt2", gpt2_plan},
      {"bert", bert_plan},   {"distilbert", distilbert_plan}, {"vit", vit_plan}};
  return all;
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

// Heads differ between models of one family, and tied ones have no layer of their own.
TensorPlan PretrainedModel::tensor_plan() const {
  const auto* architecture = find_architecture(config().architecture);
  const auto family = architecture != nullptr ? plans().find(architecture->family) : plans().end();
  if (family == plans().end()) return {};
  auto plan = family->second(head_width(nlohmann::json::parse(config().json)));
  std::erase_if(plan, [&](const TensorRule& rule) { return !has_layer(*this, rule.pattern); });
  return plan;
}

}  // namespace hortator::models
