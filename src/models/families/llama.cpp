// Llama and its relatives: Mistral (sliding window), Mixtral (mixtures of experts), Qwen2 (biases) and Qwen3
// (normalised queries and keys).
#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <hortator/error.hpp>
#include <hortator/models/key_value_cache.hpp>
#include <hortator/nn/moe.hpp>
#include <hortator/parallel/pipeline.hpp>
#include <hortator/training/recompute.hpp>

#include "core/text/text.hpp"
#include "models/architectures.hpp"
#include "models/heads.hpp"
#include "models/layers/activation.hpp"
#include "models/layers/attention.hpp"
#include "models/layers/model_inputs.hpp"
#include "models/layers/modules.hpp"
#include "models/layers/projection.hpp"
#include "models/layers/rotary.hpp"
#include "models/tensor_plans.hpp"
#include "runtime/sequence/divided_sequence.hpp"

namespace hortator::models {
namespace {

using enum TensorDivision;

struct LlamaShape {
  std::int64_t vocabulary, width, inner, layers, heads, key_heads, head_width, positions;
  double epsilon, dropout;
  Activation activation;
  std::optional<std::int64_t> padding;  ///< the token of padding
  bool query_bias, output_bias, mlp_bias, normalises_heads;
  std::vector<std::optional<std::int64_t>> windows;  ///< of each layer
  std::optional<nn::MoEOptions> experts;             ///< of each layer; nothing: an MLP
  bool computes_balance;                             ///< ModelOutputs::aux_loss
};

constexpr std::optional<std::int64_t> default_window = 4096;
constexpr std::int64_t qwen3_head_width = 128;

/// Layers with a sliding window: all of Mistral's, those of Qwen that layer_types names or that follow
/// max_window_layers.
std::vector<std::optional<std::int64_t>> windows_of(const ConfigFields& fields, std::string_view family,
                                                    std::int64_t layers) {
  std::vector<std::optional<std::int64_t>> windows(static_cast<std::size_t>(layers));
  if (family == "llama") return windows;
  if (family == "mixtral") {
    windows.assign(windows.size(), fields.optional_integer("sliding_window"));
    return windows;
  }
  const auto window = fields.is_absent("sliding_window") ? default_window : fields.optional_integer("sliding_window");
  if (family == "mistral") {
    windows.assign(windows.size(), window);
    return windows;
  }
  const bool is_used = fields.flag("use_sliding_window", false);
  constexpr std::int64_t default_first = 28;
  const auto first = fields.token("max_window_layers").value_or(default_first);
  const auto types = fields.texts("layer_types");
  fields.require(types.empty() || types.size() == windows.size(), "layer_types", "expected one type a layer");
  for (std::size_t i = 0; i < windows.size(); ++i) {
    bool slides = is_used && window && static_cast<std::int64_t>(i) >= first;
    if (!types.empty()) {
      fields.require_one_of("layer_types", types[i], {"full_attention", "sliding_attention"});
      slides = types[i] == "sliding_attention";
      fields.require(!slides || (is_used && window), "sliding_window",
                     "layer_types has sliding_attention: expected a window, and use_sliding_window");
    }
    if (slides) windows[i] = window;
  }
  return windows;
}

nn::MoEOptions experts_of(const ConfigFields& fields, const LlamaShape& shape) {
  nn::MoEOptions experts{.width = shape.width, .inner = shape.inner, .activation = shape.activation};
  experts.experts = fields.has("num_local_experts") ? fields.layers("num_local_experts") : 8;
  experts.top_k = fields.integer("num_experts_per_tok", 2);
  fields.require(experts.top_k <= experts.experts, "num_experts_per_tok", "expected at most num_local_experts");
  fields.require_value("router_jitter_noise", 0.0);
  fields.skip("router_aux_loss_coef");  // ModelConfig has it
  return experts;
}

LlamaShape llama_shape(const ConfigFields& fields, std::string_view family) {
  const bool is_qwen2 = family == "qwen2", is_qwen3 = family == "qwen3";
  LlamaShape shape{};
  shape.vocabulary = fields.dimension("vocab_size");
  shape.padding = fields.token("pad_token_id");
  shape.width = fields.dimension("hidden_size");
  shape.inner = fields.dimension("intermediate_size");
  shape.layers = fields.layers("num_hidden_layers");
  shape.heads = fields.dimension("num_attention_heads");
  const bool is_mixtral = family == "mixtral", is_mistral = family == "mistral" || is_mixtral;
  const std::int64_t key_heads = family == "llama" ? shape.heads : is_mistral ? 8 : 32;
  shape.key_heads =
      fields.dimension("num_key_value_heads", fields.is_absent("num_key_value_heads") ? key_heads : shape.heads);
  fields.require(shape.heads % shape.key_heads == 0, "num_key_value_heads",
                 "expected a divisor of num_attention_heads");
  fields.require(fields.has("head_dim") || is_qwen3 || shape.width % shape.heads == 0, "hidden_size",
                 "expected a multiple of num_attention_heads");
  shape.head_width = fields.dimension("head_dim", is_qwen3 ? qwen3_head_width : shape.width / shape.heads);
  constexpr std::int64_t max_heads_width = std::int64_t{1} << 28;
  fields.require(shape.head_width <= max_heads_width / shape.heads, "head_dim",
                 text::concat("expected at most ", max_heads_width, " / num_attention_heads"));
  shape.positions = fields.integer("max_position_embeddings");
  shape.epsilon = fields.number("rms_norm_eps", is_mixtral ? 1e-5 : 1e-6);
  shape.dropout = fields.probability("attention_dropout", 0);
  shape.activation = activation_of(fields, "hidden_act", "silu");
  const bool has_bias = (family == "llama" || is_qwen3) && fields.flag("attention_bias", false);
  shape.query_bias = is_qwen2 || has_bias;
  shape.output_bias = has_bias;
  shape.mlp_bias = family == "llama" && fields.flag("mlp_bias", false);
  shape.normalises_heads = is_qwen3;
  shape.windows = windows_of(fields, family, shape.layers);
  if (is_mixtral) {
    shape.experts = experts_of(fields, shape);
    shape.computes_balance = fields.flag("output_router_logits", false);
  }
  return shape;
}

/// What all layers share in one call.
struct LlamaStep {
  RotaryEmbedding::Rotation rotate;
  KeyValueCache* cache;
};

class LlamaAttentionImpl final : public torch::nn::Module {
 public:
  explicit LlamaAttentionImpl(const LlamaShape& shape) : head_width_(shape.head_width), dropout_(shape.dropout) {
    const auto queries = shape.heads * head_width_, keys = shape.key_heads * head_width_;
    q_proj_ = register_module("q_proj", linear(shape.width, queries, shape.query_bias));
    k_proj_ = register_module("k_proj", linear(shape.width, keys, shape.query_bias));
    v_proj_ = register_module("v_proj", linear(shape.width, keys, shape.query_bias));
    o_proj_ = register_module("o_proj", linear(queries, shape.width, shape.output_bias));
    if (!shape.normalises_heads) return;
    q_norm_ = register_module("q_norm", RmsNorm(head_width_, shape.epsilon));
    k_norm_ = register_module("k_norm", RmsNorm(head_width_, shape.epsilon));
  }

  at::Tensor forward(const at::Tensor& x, const AttentionMask& mask, const LlamaStep& step, std::size_t layer) {
    auto queries = split_heads(project(x, q_proj_), head_width_);
    auto keys = split_heads(project(x, k_proj_), head_width_);
    auto values = split_heads(project(x, v_proj_), head_width_);
    if (q_norm_) queries = q_norm_(queries), keys = k_norm_(keys);
    queries = step.rotate(queries);
    keys = step.rotate(keys);
    if (step.cache != nullptr) std::tie(keys, values) = step.cache->append(layer, keys, values);
    const auto dropout = is_training() ? dropout_ : 0.0;
    return project(attention(queries, keys, values, mask, {.dropout = dropout}), o_proj_);
  }

 private:
  std::int64_t head_width_;
  double dropout_;
  torch::nn::Linear q_proj_ = nullptr, k_proj_ = nullptr, v_proj_ = nullptr, o_proj_ = nullptr;
  RmsNorm q_norm_ = nullptr, k_norm_ = nullptr;
};
TORCH_MODULE(LlamaAttention);

class LlamaMlpImpl final : public torch::nn::Module {
 public:
  explicit LlamaMlpImpl(const LlamaShape& shape)
      : activation_(shape.activation),
        gate_proj_(register_module("gate_proj", linear(shape.width, shape.inner, shape.mlp_bias))),
        up_proj_(register_module("up_proj", linear(shape.width, shape.inner, shape.mlp_bias))),
        down_proj_(register_module("down_proj", linear(shape.inner, shape.width, shape.mlp_bias))) {}

  at::Tensor forward(const at::Tensor& x) {
    return project(activation_(project(x, gate_proj_)) * project(x, up_proj_), down_proj_);
  }

 private:
  Activation activation_;
  torch::nn::Linear gate_proj_, up_proj_, down_proj_;
};
TORCH_MODULE(LlamaMlp);

class LlamaDecoderLayerImpl final : public torch::nn::Module {
 public:
  explicit LlamaDecoderLayerImpl(const LlamaShape& shape)
      : self_attn_(register_module("self_attn", LlamaAttention(shape))),
        input_layernorm_(register_module("input_layernorm", RmsNorm(shape.width, shape.epsilon))),
        post_attention_layernorm_(register_module("post_attention_layernorm", RmsNorm(shape.width, shape.epsilon))) {
    if (shape.experts) {
      experts_ = register_module("mlp", nn::MoE(*shape.experts));
    } else {
      mlp_ = register_module("mlp", LlamaMlp(shape));
    }
  }

  at::Tensor forward(at::Tensor x, const AttentionMask& mask, const LlamaStep& step, std::size_t layer) {
    x = x + self_attn_(input_layernorm_(x), mask, step, layer);
    const auto hidden = post_attention_layernorm_(x);
    return x + (mlp_ ? mlp_(hidden) : experts_(hidden));
  }

 private:
  LlamaAttention self_attn_;
  LlamaMlp mlp_ = nullptr;
  nn::MoE experts_ = nullptr;
  RmsNorm input_layernorm_, post_attention_layernorm_;
};
TORCH_MODULE(LlamaDecoderLayer);

class Llama final : public PretrainedModel {
 public:
  Llama(const LlamaShape& shape, RotaryEmbedding rotary)
      : vocabulary_(shape.vocabulary),
        windows_(shape.windows),
        computes_balance_(shape.computes_balance),
        rotary_(std::move(rotary)),
        embed_tokens_(register_module("embed_tokens", embedding(shape.vocabulary, shape.width, shape.padding))),
        layers_(register_module("layers", torch::nn::ModuleList())),
        norm_(register_module("norm", RmsNorm(shape.width, shape.epsilon))) {
    for (std::int64_t i = 0; i < shape.layers; ++i) layers_->push_back(LlamaDecoderLayer(shape));
  }

  ModelOutputs forward(const ModelInputs& inputs) override {
    const auto& ids = inputs.input_ids;
    const auto past = inputs.cache != nullptr ? inputs.cache->time() : 0;
    require_text_inputs(inputs, {.tokens = vocabulary_}, past);
    const auto all = past + ids.size(1);
    auto positions = inputs.position_ids;
    if (!positions.defined()) positions = runtime::default_positions(past, ids.size(1), ids.device()).unsqueeze(0);
    const auto divided = runtime::divided_sequence();
    const auto length = !rotary_.is_dynamic() ? all
                        : divided             ? divided->length
                                              : positions.max().item<std::int64_t>() + 1;
    PipelineLayers stage(layers_->size());
    auto x = stage.enter([&] { return embed_tokens_(ids); });
    const LlamaStep step{.rotate = rotary_.rotation(positions, length, x.scalar_type()), .cache = inputs.cache};
    std::optional<AttentionMask> full, sliding;
    for (const auto i : stage) {
      auto& mask = windows_[i] ? sliding : full;
      if (!mask)
        mask = causal_mask({ids.size(1), all, windows_[i], inputs.document_ids}, inputs.attention_mask, ids.device());
      const auto layer = [this, i, mask = *mask, step](const at::Tensor& before) {
        return layers_[i]->as<LlamaDecoderLayer>()->forward(before, mask, step, i);
      };
      x = recomputes_layers() && inputs.cache == nullptr ? recompute(layer, x) : layer(x);
    }
    if (computes_balance_ && inputs.cache == nullptr) refuse_pipeline_of(stage);
    stage.leave(x);
    ModelOutputs outputs{.last_hidden_state = norm_(x)};
    if (computes_balance_ && inputs.cache == nullptr)
      outputs.aux_loss = nn::load_balancing_loss(*layers_, inputs.attention_mask);
    return outputs;
  }

  const at::Tensor& token_embedding() const { return embed_tokens_->weight; }

  std::vector<std::string> classes_of_layers() const override {
    return {"LlamaDecoderLayer", "MistralDecoderLayer", "MixtralDecoderLayer", "Qwen2DecoderLayer",
            "Qwen3DecoderLayer"};
  }
  std::vector<std::string> names_of_layers() const override { return numbered_names("layers.", layers_->size()); }

 private:
  void refuse_pipeline_of(const PipelineLayers& stage) const {
    if (stage.has_all()) return;
    throw UsageError({.what = "output_router_logits is set in config.json, and parallel.pipeline is used",
                      .why = "the balance loss needs the routers of all layers, which are on several ranks",
                      .hint = "set output_router_logits to false, or leave the pipeline out"});
  }

  std::int64_t vocabulary_;
  std::vector<std::optional<std::int64_t>> windows_;
  bool computes_balance_;
  RotaryEmbedding rotary_;
  torch::nn::Embedding embed_tokens_;
  torch::nn::ModuleList layers_;
  RmsNorm norm_;
};

std::shared_ptr<PretrainedModel> make_llama(const ConfigFields& fields, const Architecture& architecture) {
  const auto shape = llama_shape(fields, architecture.family);
  const bool is_tied = fields.flag("tie_word_embeddings", false);
  const double theta = architecture.family == "mixtral" ? 1e6 : 1e4;
  const auto llama = std::make_shared<Llama>(shape, RotaryEmbedding(fields, shape.head_width, shape.positions, theta));
  const Body body{.model = llama, .name = std::string(architecture.prefix), .width = shape.width};
  const auto score = [&](bool bias, double dropout) {
    return LinearHead{.name = "score", .outputs = fields.num_labels(), .bias = bias, .dropout = dropout};
  };
  switch (architecture.head) {
    case Head::causal:
      return causal_head(body, shape.vocabulary, is_tied ? llama->token_embedding() : at::Tensor());
    case Head::sequence:
      return last_token_head(body, score(false, 0), fields.token("pad_token_id"));
    case Head::tokens: {
      const auto dropout = fields.probability("classifier_dropout", fields.probability("hidden_dropout", 0.1));
      return token_head(body, score(true, dropout));
    }
    default:
      return llama;
  }
}

TensorPlan llama_plan(int head) {
  return {by_heads("self_attn.q_proj", columns, head),
          by_shared_heads("self_attn.k_proj", head),
          by_shared_heads("self_attn.v_proj", head),
          by_heads("self_attn.o_proj", rows, head),
          {"mlp.gate_proj", columns},
          {"mlp.up_proj", columns},
          {"mlp.down_proj", rows},
          by_vocabulary("embed_tokens"),
          by_vocabulary("lm_head")};
}

/// Experts are divided by parallel.experts, not here.
TensorPlan mixtral_plan(int head) {
  auto plan = llama_plan(head);
  std::erase_if(plan, [](const TensorRule& rule) { return rule.pattern.starts_with("mlp."); });
  return plan;
}

}  // namespace

std::vector<Architecture> llama_architectures() {
  return {{"LlamaModel", "llama", Head::none, "model", make_llama, llama_plan},
          {"LlamaForCausalLM", "llama", Head::causal, "model", make_llama, llama_plan},
          {"LlamaForSequenceClassification", "llama", Head::sequence, "model", make_llama, llama_plan},
          {"LlamaForTokenClassification", "llama", Head::tokens, "model", make_llama, llama_plan},
          {"MistralModel", "mistral", Head::none, "model", make_llama, llama_plan},
          {"MistralForCausalLM", "mistral", Head::causal, "model", make_llama, llama_plan},
          {"MistralForSequenceClassification", "mistral", Head::sequence, "model", make_llama, llama_plan},
          {"MistralForTokenClassification", "mistral", Head::tokens, "model", make_llama, llama_plan},
          {"MixtralModel", "mixtral", Head::none, "model", make_llama, mixtral_plan},
          {"MixtralForCausalLM", "mixtral", Head::causal, "model", make_llama, mixtral_plan},
          {"MixtralForSequenceClassification", "mixtral", Head::sequence, "model", make_llama, mixtral_plan},
          {"MixtralForTokenClassification", "mixtral", Head::tokens, "model", make_llama, mixtral_plan},
          {"Qwen2Model", "qwen2", Head::none, "model", make_llama, llama_plan},
          {"Qwen2ForCausalLM", "qwen2", Head::causal, "model", make_llama, llama_plan},
          {"Qwen2ForSequenceClassification", "qwen2", Head::sequence, "model", make_llama, llama_plan},
          {"Qwen2ForTokenClassification", "qwen2", Head::tokens, "model", make_llama, llama_plan},
          {"Qwen3Model", "qwen3", Head::none, "model", make_llama, llama_plan},
          {"Qwen3ForCausalLM", "qwen3", Head::causal, "model", make_llama, llama_plan},
          {"Qwen3ForSequenceClassification", "qwen3", Head::sequence, "model", make_llama, llama_plan},
          {"Qwen3ForTokenClassification", "qwen3", Head::tokens, "model", make_llama, llama_plan}};
}

}  // namespace hortator::models
