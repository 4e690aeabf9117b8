// GPT-2: learned positions, norms before each part, and one projection for queries, keys and values.
#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cmath>
#include <hortator/models/key_value_cache.hpp>
#include <hortator/parallel/pipeline.hpp>
#include <hortator/training/recompute.hpp>

#include "models/architectures.hpp"
#include "models/heads.hpp"
#include "models/layers/activation.hpp"
#include "models/layers/attention.hpp"
#include "models/layers/model_inputs.hpp"
#include "models/layers/modules.hpp"
#include "models/tensor_plans.hpp"
#include "runtime/sequence/divided_sequence.hpp"

namespace hortator::models {
namespace {

using enum TensorDivision;

struct Gpt2Shape {
  std::int64_t vocabulary, width, inner, layers, heads, positions;
  double epsilon, attention_dropout, embedding_dropout, residual_dropout;
  Activation activation;
  bool scales, scales_by_layer;
};

Gpt2Shape gpt2_shape(const ConfigFields& fields) {
  Gpt2Shape shape{};
  shape.vocabulary = fields.dimension("vocab_size");
  shape.width = fields.dimension("n_embd");
  shape.inner = fields.dimension("n_inner", 4 * shape.width);
  shape.layers = fields.layers("n_layer");
  shape.heads = fields.dimension("n_head");
  fields.require(shape.width % shape.heads == 0, "n_embd", "expected a multiple of n_head");
  shape.positions = fields.dimension("n_positions");
  shape.epsilon = fields.number("layer_norm_epsilon", 1e-5);
  shape.attention_dropout = fields.probability("attn_pdrop", 0.1);
  shape.embedding_dropout = fields.probability("embd_pdrop", 0.1);
  shape.residual_dropout = fields.probability("resid_pdrop", 0.1);
  shape.activation = activation_of(fields, "activation_function", "gelu_new");
  shape.scales = fields.flag("scale_attn_weights", true);
  shape.scales_by_layer = fields.flag("scale_attn_by_inverse_layer_idx", false);
  fields.require_value("add_cross_attention", false);
  for (const auto* name : {"n_ctx", "reorder_and_upcast_attn", "summary_activation", "summary_first_dropout",
                           "summary_proj_to_labels", "summary_type", "summary_use_proj"})
    fields.skip(name);
  return shape;
}

class Gpt2AttentionImpl final : public torch::nn::Module {
 public:
  Gpt2AttentionImpl(const Gpt2Shape& shape, std::size_t layer)
      : layer_(layer),
        head_width_(shape.width / shape.heads),
        dropout_(shape.attention_dropout),
        scale_(shape.scales ? 1 / std::sqrt(static_cast<double>(head_width_)) : 1.0),
        c_attn_(register_module("c_attn", Conv1D(shape.width, 3 * shape.width))),
        c_proj_(register_module("c_proj", Conv1D(shape.width, shape.width))) {
    if (shape.scales_by_layer) scale_ /= static_cast<double>(layer + 1);
  }

  at::Tensor forward(const at::Tensor& x, const AttentionMask& mask, KeyValueCache* cache) {
    const auto parts = c_attn_(x).chunk(3, -1);
    const auto queries = split_heads(parts[0], head_width_);
    auto keys = split_heads(parts[1], head_width_), values = split_heads(parts[2], head_width_);
    if (cache != nullptr) std::tie(keys, values) = cache->append(layer_, keys, values);
    const auto dropout = is_training() ? dropout_ : 0.0;
    return c_proj_(attention(queries, keys, values, mask, {.dropout = dropout, .scale = scale_}));
  }

 private:
  std::size_t layer_;
  std::int64_t head_width_;
  double dropout_, scale_;
  Conv1D c_attn_, c_proj_;
};
TORCH_MODULE(Gpt2Attention);

class Gpt2BlockImpl final : public torch::nn::Module {
 public:
  Gpt2BlockImpl(const Gpt2Shape& shape, std::size_t layer)
      : dropout_(shape.residual_dropout),
        activation_(shape.activation),
        ln_1_(register_module("ln_1", layer_norm(shape.width, shape.epsilon))),
        attn_(register_module("attn", Gpt2Attention(shape, layer))),
        ln_2_(register_module("ln_2", layer_norm(shape.width, shape.epsilon))),
        c_fc_(place(*this, "mlp.c_fc", Conv1D(shape.width, shape.inner))),
        c_proj_(place(*this, "mlp.c_proj", Conv1D(shape.inner, shape.width))) {}

  at::Tensor forward(at::Tensor x, const AttentionMask& mask, KeyValueCache* cache) {
    x = x + at::dropout(attn_(ln_1_(x), mask, cache), dropout_, is_training());
    return x + at::dropout(c_proj_(activation_(c_fc_(ln_2_(x)))), dropout_, is_training());
  }

 private:
  double dropout_;
  Activation activation_;
  torch::nn::LayerNorm ln_1_;
  Gpt2Attention attn_;
  torch::nn::LayerNorm ln_2_;
  Conv1D c_fc_, c_proj_;
};
TORCH_MODULE(Gpt2Block);

class Gpt2 final : public PretrainedModel {
 public:
  explicit Gpt2(const Gpt2Shape& shape)
      : vocabulary_(shape.vocabulary),
        positions_(shape.positions),
        dropout_(shape.embedding_dropout),
        wte_(register_module("wte", embedding(shape.vocabulary, shape.width))),
        wpe_(register_module("wpe", embedding(shape.positions, shape.width))),
        h_(register_module("h", torch::nn::ModuleList())),
        ln_f_(register_module("ln_f", layer_norm(shape.width, shape.epsilon))) {
    for (std::int64_t i = 0; i < shape.layers; ++i) h_->push_back(Gpt2Block(shape, static_cast<std::size_t>(i)));
  }

  ModelOutputs forward(const ModelInputs& inputs) override {
    const auto& ids = inputs.input_ids;
    const auto past = inputs.cache != nullptr ? inputs.cache->time() : 0;
    require_text_inputs(inputs, {.tokens = vocabulary_, .positions = positions_}, past);
    const auto all = past + ids.size(1);
    auto positions = inputs.position_ids;
    if (!positions.defined()) positions = runtime::default_positions(past, ids.size(1), ids.device()).unsqueeze(0);
    PipelineLayers stage(h_->size());
    auto x = stage.enter([&] {
      auto sum = wte_(ids) + wpe_(positions);
      if (inputs.token_type_ids.defined()) sum = sum + wte_(inputs.token_type_ids);
      return at::dropout(sum, dropout_, is_training());
    });
    const auto mask = causal_mask({.queries = ids.size(1), .keys = all, .documents = inputs.document_ids},
                                  inputs.attention_mask, ids.device());
    for (const auto i : stage) {
      const auto layer = [block = h_[i], mask, cache = inputs.cache](const at::Tensor& before) {
        return block->as<Gpt2Block>()->forward(before, mask, cache);
      };
      x = recomputes_layers() && inputs.cache == nullptr ? recompute(layer, x) : layer(x);
    }
    stage.leave(x);
    return {.last_hidden_state = ln_f_(x)};
  }

  const at::Tensor& token_embedding() const { return wte_->weight; }

  std::vector<std::string> classes_of_layers() const override { return {"GPT2Block"}; }
  std::vector<std::string> names_of_layers() const override { return numbered_names("h.", h_->size()); }

 private:
  std::int64_t vocabulary_, positions_;
  double dropout_;
  torch::nn::Embedding wte_, wpe_;
  torch::nn::ModuleList h_;
  torch::nn::LayerNorm ln_f_;
};

std::shared_ptr<PretrainedModel> make_gpt2(const ConfigFields& fields, const Architecture& architecture) {
  const auto shape = gpt2_shape(fields);
  const bool is_tied = fields.flag("tie_word_embeddings", true);
  const auto gpt2 = std::make_shared<Gpt2>(shape);
  const Body body{.model = gpt2, .name = std::string(architecture.prefix), .width = shape.width};
  switch (architecture.head) {
    case Head::causal:
      return causal_head(body, shape.vocabulary, is_tied ? gpt2->token_embedding() : at::Tensor());
    case Head::sequence:
      return last_token_head(body, {.name = "score", .outputs = fields.num_labels(), .bias = false},
                             fields.token("pad_token_id"));
    case Head::tokens: {
      const auto dropout = fields.probability("classifier_dropout", fields.probability("hidden_dropout", 0.1));
      return token_head(body, {.name = "classifier", .outputs = fields.num_labels(), .dropout = dropout});
    }
    default:
      return gpt2;
  }
}

TensorPlan gpt2_plan(int head) {
  return {transposed(by_heads("attn.c_attn", columns, head), 3),
          transposed(by_heads("attn.c_proj", rows, head)),
          transposed({"mlp.c_fc", columns}),
          transposed({"mlp.c_proj", rows}),
          by_vocabulary("wte"),
          by_vocabulary("lm_head")};
}

}  // namespace

std::vector<Architecture> gpt2_architectures() {
  return {{"GPT2Model", "gpt2", Head::none, "transformer", make_gpt2, gpt2_plan},
          {"GPT2LMHeadModel", "gpt2", Head::causal, "transformer", make_gpt2, gpt2_plan},
          {"GPT2ForSequenceClassification", "gpt2", Head::sequence, "transformer", make_gpt2, gpt2_plan},
          {"GPT2ForTokenClassification", "gpt2", Head::tokens, "transformer", make_gpt2, gpt2_plan}};
}

}  // namespace hortator::models
