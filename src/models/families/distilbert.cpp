// DistilBERT: BERT without token types and pooler, under other names.
#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <hortator/lora.hpp>
#include <hortator/parallel/pipeline.hpp>
#include <hortator/training/recompute.hpp>

#include "models/architectures.hpp"
#include "models/heads.hpp"
#include "models/layers/activation.hpp"
#include "models/layers/attention.hpp"
#include "models/layers/model_inputs.hpp"
#include "models/layers/modules.hpp"
#include "models/layers/projection.hpp"
#include "models/tensor_plans.hpp"
#include "runtime/sequence/divided_sequence.hpp"

namespace hortator::models {
namespace {

using enum TensorDivision;

constexpr double distilbert_epsilon = 1e-12;

struct DistilBertShape {
  std::int64_t vocabulary, width, inner, layers, heads, positions;
  double attention_dropout, dropout;
  Activation activation;
  std::optional<std::int64_t> padding;  ///< the token of padding
};

DistilBertShape distilbert_shape(const ConfigFields& fields) {
  DistilBertShape shape{};
  shape.vocabulary = fields.dimension("vocab_size");
  shape.padding = fields.is_absent("pad_token_id") ? 0 : fields.token("pad_token_id");
  shape.width = fields.dimension("dim");
  shape.inner = fields.dimension("hidden_dim");
  shape.layers = fields.layers("n_layers");
  shape.heads = fields.dimension("n_heads");
  fields.require(shape.width % shape.heads == 0, "dim", "expected a multiple of n_heads");
  shape.positions = fields.dimension("max_position_embeddings", 512);
  shape.attention_dropout = fields.probability("attention_dropout", 0.1);
  shape.dropout = fields.probability("dropout", 0.1);
  shape.activation = activation_of(fields, "activation", "gelu");
  fields.skip("sinusoidal_pos_embds");  // either kind is stored, and trained
  for (const auto* name : {"qa_dropout", "tie_weights_", "seq_classif_dropout"}) fields.skip(name);
  return shape;
}

class DistilBertLayerImpl final : public torch::nn::Module {
 public:
  explicit DistilBertLayerImpl(const DistilBertShape& shape)
      : head_width_(shape.width / shape.heads),
        attention_dropout_(shape.attention_dropout),
        dropout_(shape.dropout),
        activation_(shape.activation),
        q_lin_(place(*this, "attention.q_lin", linear(shape.width, shape.width))),
        k_lin_(place(*this, "attention.k_lin", linear(shape.width, shape.width))),
        v_lin_(place(*this, "attention.v_lin", linear(shape.width, shape.width))),
        out_lin_(place(*this, "attention.out_lin", linear(shape.width, shape.width))),
        sa_layer_norm_(register_module("sa_layer_norm", layer_norm(shape.width, distilbert_epsilon))),
        lin1_(place(*this, "ffn.lin1", linear(shape.width, shape.inner))),
        lin2_(place(*this, "ffn.lin2", linear(shape.inner, shape.width))),
        output_layer_norm_(register_module("output_layer_norm", layer_norm(shape.width, distilbert_epsilon))) {}

  at::Tensor forward(at::Tensor x, const AttentionMask& mask) {
    const auto mixed = attention(
        split_heads(project(x, q_lin_), head_width_), split_heads(project(x, k_lin_), head_width_),
        split_heads(project(x, v_lin_), head_width_), mask, {.dropout = is_training() ? attention_dropout_ : 0.0});
    x = sa_layer_norm_(x + project(mixed, out_lin_));
    return output_layer_norm_(x + at::dropout(project(activation_(project(x, lin1_)), lin2_), dropout_, is_training()));
  }

 private:
  std::int64_t head_width_;
  double attention_dropout_, dropout_;
  Activation activation_;
  torch::nn::Linear q_lin_, k_lin_, v_lin_, out_lin_;
  torch::nn::LayerNorm sa_layer_norm_;
  torch::nn::Linear lin1_, lin2_;
  torch::nn::LayerNorm output_layer_norm_;
};
TORCH_MODULE(DistilBertLayer);

class DistilBert final : public PretrainedModel {
 public:
  explicit DistilBert(const DistilBertShape& shape)
      : rows_{.tokens = shape.vocabulary, .positions = shape.positions},
        dropout_(shape.dropout),
        words_(place(*this, "embeddings.word_embeddings", embedding(shape.vocabulary, shape.width, shape.padding))),
        positions_(place(*this, "embeddings.position_embeddings", embedding(shape.positions, shape.width))),
        norm_(place(*this, "embeddings.LayerNorm", layer_norm(shape.width, distilbert_epsilon))),
        layers_(place(*this, "transformer.layer", torch::nn::ModuleList())) {
    for (std::int64_t i = 0; i < shape.layers; ++i) layers_->push_back(DistilBertLayer(shape));
  }

  ModelOutputs forward(const ModelInputs& inputs) override {
    require_text_inputs(inputs, rows_);
    const auto& ids = inputs.input_ids;
    auto positions = inputs.position_ids;
    if (!positions.defined()) positions = runtime::default_positions(0, ids.size(1), ids.device()).unsqueeze(0);
    PipelineLayers stage(layers_->size());
    auto x =
        stage.enter([&] { return at::dropout(norm_(words_(ids) + positions_(positions)), dropout_, is_training()); });
    const auto mask = padding_mask(inputs.attention_mask);
    for (const auto i : stage) {
      const auto run = [layer = layers_[i], mask](const at::Tensor& before) {
        return layer->as<DistilBertLayer>()->forward(before, mask);
      };
      x = recomputes_layers() ? recompute(run, x) : run(x);
    }
    stage.leave(x);
    return {.last_hidden_state = x};
  }

  const at::Tensor& token_embedding() const { return words_->weight; }

  std::vector<std::string> classes_of_layers() const override { return {"DistilBertLayer", "TransformerBlock"}; }
  std::vector<std::string> names_of_layers() const override {
    return numbered_names("transformer.layer.", layers_->size());
  }

 private:
  EmbeddingRows rows_;
  double dropout_;
  torch::nn::Embedding words_, positions_;
  torch::nn::LayerNorm norm_;
  torch::nn::ModuleList layers_;
};

/// Scores of a text from its first token.
class DistilBertSequenceHead final : public PretrainedModel {
 public:
  DistilBertSequenceHead(const Body& body, std::int64_t labels, double dropout)
      : dropout_(dropout),
        body_(register_module(body.name, body.model)),
        pre_classifier_(register_module("pre_classifier", linear(body.width, body.width))),
        classifier_(register_module("classifier", linear(body.width, labels))) {}

  ModelOutputs forward(const ModelInputs& inputs) override {
    auto outputs = body_->forward(inputs);
    const auto x = at::relu(pre_classifier_(runtime::first_token(outputs.last_hidden_state)));
    outputs.logits = classifier_(at::dropout(x, dropout_, is_training()));
    return outputs;
  }

 private:
  double dropout_;
  std::shared_ptr<PretrainedModel> body_;
  torch::nn::Linear pre_classifier_, classifier_;
};

/// Scores of the token at each position.
class DistilBertMaskedHead final : public PretrainedModel, public HasTiedLayers {
 public:
  DistilBertMaskedHead(const DistilBertShape& shape, const std::shared_ptr<DistilBert>& body, const std::string& name,
                       bool is_tied)
      : activation_(shape.activation),
        body_(register_module(name, body)),
        transform_(register_module("vocab_transform", linear(shape.width, shape.width))),
        norm_(register_module("vocab_layer_norm", layer_norm(shape.width, distilbert_epsilon))) {
    auto& projector = module_at(*this, "vocab_projector");
    if (!is_tied)
      weight_ = projector.register_parameter("weight", at::empty({shape.vocabulary, shape.width}).normal_(0, 0.02));
    bias_ = projector.register_parameter("bias", at::zeros({shape.vocabulary}));
  }

  ModelOutputs forward(const ModelInputs& inputs) override {
    auto outputs = body_->forward(without_targets(inputs));
    const auto x = norm_(activation_(project(outputs.last_hidden_state, transform_)));
    predict_tokens(x, weight_.defined() ? weight_ : body_->token_embedding(), bias_, inputs, outputs);
    return outputs;
  }

  std::vector<at::Tensor> used_after_layers() const override {
    return weight_.defined() ? std::vector<at::Tensor>() : std::vector{body_->token_embedding()};
  }
  std::map<std::string, at::Tensor> tied_layers() const override {
    if (weight_.defined()) return {};
    return {{scoring_layer(), body_->token_embedding()}};
  }
  std::string scoring_layer() const override { return "vocab_projector"; }

 private:
  Activation activation_;
  std::shared_ptr<DistilBert> body_;
  torch::nn::Linear transform_;
  torch::nn::LayerNorm norm_;
  at::Tensor weight_, bias_;  // no weight if it is the token embedding
};

std::shared_ptr<PretrainedModel> make_distilbert(const ConfigFields& fields, const Architecture& architecture) {
  const auto shape = distilbert_shape(fields);
  const bool is_tied = fields.flag("tie_word_embeddings", fields.flag("tie_weights_", true));
  const auto model = std::make_shared<DistilBert>(shape);
  const Body body{.model = model, .name = std::string(architecture.prefix), .width = shape.width};
  switch (architecture.head) {
    case Head::sequence:
      return std::make_shared<DistilBertSequenceHead>(body, fields.num_labels(),
                                                      fields.probability("seq_classif_dropout", 0.2));
    case Head::tokens:
      return token_head(body, {.name = "classifier", .outputs = fields.num_labels(), .dropout = shape.dropout});
    case Head::masked:
      return std::make_shared<DistilBertMaskedHead>(shape, model, body.name, is_tied);
    default:
      return model;
  }
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

}  // namespace

std::vector<Architecture> distilbert_architectures() {
  return {
      {"DistilBertModel", "distilbert", Head::none, "distilbert", make_distilbert, distilbert_plan},
      {"DistilBertForMaskedLM", "distilbert", Head::masked, "distilbert", make_distilbert, distilbert_plan},
      {"DistilBertForSequenceClassification", "distilbert", Head::sequence, "distilbert", make_distilbert,
       distilbert_plan},
      {"DistilBertForTokenClassification", "distilbert", Head::tokens, "distilbert", make_distilbert, distilbert_plan}};
}

}  // namespace hortator::models
