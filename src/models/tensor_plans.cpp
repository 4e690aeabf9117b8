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

/// A vocabulary that is too small to be divided is replicated.
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

/// The layers of an encoder: each family has its own names.
struct EncoderNames {
  const char *query, *key, *value, *out, *up, *down;
  std::vector<const char*> vocabulary = {};
};

TensorPlan encoder_plan(const EncoderNames& names, int head) {
  TensorPlan plan = {by_heads(names.query, columns, head),
                     by_heads(names.key, columns, head),
                     by_heads(names.value, columns, head),
                     by_heads(names.out, rows, head),
                     {names.up, columns},
                     {names.down, rows}};
  for (const auto* name : names.vocabulary) plan.push_back(tokens(name));
  return plan;
}

TensorPlan bert_plan(int head) {
  return encoder_plan({.query = "attention.self.query",
                       .key = "attention.self.key",
                       .value = "attention.self.value",
                       .out = "attention.output.dense",
                       .up = "intermediate.dense",
                       .down = "output.dense",
                       .vocabulary = {"word_embeddings", "cls.predictions.bias", "cls.predictions.decoder"}},
                      head);
}

TensorPlan distilbert_plan(int head) {
  return encoder_plan({.query = "attention.q_lin",
                       .key = "attention.k_lin",
                       .value = "attention.v_lin",
                       .out = "attention.out_lin",
                       .up = "ffn.lin1",
                       .down = "ffn.lin2",
                       .vocabulary = {"word_embeddings", "vocab_projector"}},
                      head);
}

TensorPlan vit_plan(int head) {
  return encoder_plan({.query = "attention.attention.query",
                       .key = "attention.attention.key",
                       .value = "attention.attention.value",
                       .out = "attention.output.dense",
                       .up = "intermediate.dense",
                       .down = "output.dense"},
                      head);
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
