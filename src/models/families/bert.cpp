// BERT: an encoder with norms after each part. MiniLM checkpoints are BERT models.
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

struct BertShape {
  std::int64_t vocabulary, width, inner, layers, heads, positions, types;
  double epsilon, attention_dropout, dropout;
  Activation activation;
  std::optional<std::int64_t> padding;  ///< the token of padding
};

BertShape bert_shape(const ConfigFields& fields) {
  BertShape shape{};
  shape.vocabulary = fields.dimension("vocab_size");
  shape.padding = fields.is_absent("pad_token_id") ? 0 : fields.token("pad_token_id");
  shape.width = fields.dimension("hidden_size");
  shape.inner = fields.dimension("intermediate_size");
  shape.layers = fields.layers("num_hidden_layers");
  shape.heads = fields.dimension("num_attention_heads");
  fields.require(shape.width % shape.heads == 0, "hidden_size", "expected a multiple of num_attention_heads");
  shape.positions = fields.dimension("max_position_embeddings", 512);
  shape.types = fields.dimension("type_vocab_size", 2);
  shape.epsilon = fields.number("layer_norm_eps", 1e-12);
  shape.attention_dropout = fields.probability("attention_probs_dropout_prob", 0.1);
  shape.dropout = fields.probability("hidden_dropout_prob", 0.1);
  shape.activation = activation_of(fields, "hidden_act", "gelu");
  fields.require_value("position_embedding_type", "absolute");
  fields.require_value("is_decoder", false);
  fields.require_value("add_cross_attention", false);
  fields.require_value("is_encoder_decoder", false);
  return shape;
}

class BertLayerImpl final : public torch::nn::Module {
 public:
  explicit BertLayerImpl(const BertShape& shape)
      : head_width_(shape.width / shape.heads),
        attention_dropout_(shape.attention_dropout),
        dropout_(shape.dropout),
        activation_(shape.activation),
        query_(place(*this, "attention.self.query", linear(shape.width, shape.width))),
        key_(place(*this, "attention.self.key", linear(shape.width, shape.width))),
        value_(place(*this, "attention.self.value", linear(shape.width, shape.width))),
        join_(place(*this, "attention.output.dense", linear(shape.width, shape.width))),
        attention_norm_(place(*this, "attention.output.LayerNorm", layer_norm(shape.width, shape.epsilon))),
        widen_(place(*this, "intermediate.dense", linear(shape.width, shape.inner))),
        narrow_(place(*this, "output.dense", linear(shape.inner, shape.width))),
        output_norm_(place(*this, "output.LayerNorm", layer_norm(shape.width, shape.epsilon))) {}

  at::Tensor forward(at::Tensor x, const AttentionMask& mask) {
    const auto mixed = attention(
        split_heads(project(x, query_), head_width_), split_heads(project(x, key_), head_width_),
        split_heads(project(x, value_), head_width_), mask, {.dropout = is_training() ? attention_dropout_ : 0.0});
    x = attention_norm_(x + at::dropout(project(mixed, join_), dropout_, is_training()));
    return output_norm_(x + at::dropout(project(activation_(project(x, widen_)), narrow_), dropout_, is_training()));
  }

 private:
  std::int64_t head_width_;
  double attention_dropout_, dropout_;
  Activation activation_;
  torch::nn::Linear query_, key_, value_, join_;
  torch::nn::LayerNorm attention_norm_;
  torch::nn::Linear widen_, narrow_;
  torch::nn::LayerNorm output_norm_;
};
TORCH_MODULE(BertLayer);

class Bert final : public PretrainedModel {
 public:
  Bert(const BertShape& shape, bool pools)
      : rows_{.tokens = shape.vocabulary, .positions = shape.positions, .types = shape.types},
        dropout_(shape.dropout),
        words_(place(*this, "embeddings.word_embeddings", embedding(shape.vocabulary, shape.width, shape.padding))),
        positions_(place(*this, "embeddings.position_embeddings", embedding(shape.positions, shape.width))),
        types_(place(*this, "embeddings.token_type_embeddings", embedding(shape.types, shape.width))),
        norm_(place(*this, "embeddings.LayerNorm", layer_norm(shape.width, shape.epsilon))),
        layers_(place(*this, "encoder.layer", torch::nn::ModuleList())) {
    for (std::int64_t i = 0; i < shape.layers; ++i) layers_->push_back(BertLayer(shape));
    if (pools) pooler_ = place(*this, "pooler.dense", linear(shape.width, shape.width));
  }

  ModelOutputs forward(const ModelInputs& inputs) override {
    require_text_inputs(inputs, rows_);
    const auto& ids = inputs.input_ids;
    auto positions = inputs.position_ids, types = inputs.token_type_ids;
    if (!positions.defined()) positions = runtime::default_positions(0, ids.size(1), ids.device()).unsqueeze(0);
    if (!types.defined()) types = at::zeros_like(ids);
    PipelineLayers stage(layers_->size());
    auto x = stage.enter([&] {
      return at::dropout(norm_(words_(ids) + types_(types) + positions_(positions)), dropout_, is_training());
    });
    const auto mask = padding_mask(inputs.attention_mask);
    for (const auto i : stage) {
      const auto run = [layer = layers_[i], mask](const at::Tensor& before) {
        return layer->as<BertLayer>()->forward(before, mask);
      };
      x = recomputes_layers() ? recompute(run, x) : run(x);
    }
    stage.leave(x);
    if (!pooler_) return {.last_hidden_state = x};
    return {.last_hidden_state = x, .pooler_output = at::tanh(pooler_(runtime::first_token(x)))};
  }

  const at::Tensor& token_embedding() const { return words_->weight; }

  std::vector<std::string> classes_of_layers() const override { return {"BertLayer"}; }
  std::vector<std::string> names_of_layers() const override {
    return numbered_names("encoder.layer.", layers_->size());
  }

 private:
  EmbeddingRows rows_;
  double dropout_;
  torch::nn::Embedding words_, positions_, types_;
  torch::nn::LayerNorm norm_;
  torch::nn::ModuleList layers_;
  torch::nn::Linear pooler_ = nullptr;
};

/// Scores of the token at each position.
class BertMaskedHead final : public PretrainedModel, public HasTiedLayers {
 public:
  BertMaskedHead(const BertShape& shape, const std::shared_ptr<Bert>& bert, const std::string& name, bool is_tied)
      : activation_(shape.activation),
        bert_(register_module(name, bert)),
        dense_(place(*this, "cls.predictions.transform.dense", linear(shape.width, shape.width))),
        norm_(place(*this, "cls.predictions.transform.LayerNorm", layer_norm(shape.width, shape.epsilon))) {
    bias_ = module_at(*this, "cls.predictions").register_parameter("bias", at::zeros({shape.vocabulary}));
    if (!is_tied) decoder_ = place(*this, "cls.predictions.decoder", linear(shape.width, shape.vocabulary));
  }

  ModelOutputs forward(const ModelInputs& inputs) override {
    auto outputs = bert_->forward(without_targets(inputs));
    const auto x = norm_(activation_(project(outputs.last_hidden_state, dense_)));
    const auto& weight = decoder_ ? decoder_->weight : bert_->token_embedding();
    predict_tokens(x, weight, decoder_ ? decoder_->bias : bias_, inputs, outputs);
    return outputs;
  }

  std::vector<at::Tensor> used_after_layers() const override {
    return decoder_ ? std::vector<at::Tensor>() : std::vector{bert_->token_embedding()};
  }
  std::map<std::string, at::Tensor> tied_layers() const override {
    if (decoder_) return {};
    return {{scoring_layer(), bert_->token_embedding()}};
  }
  std::string scoring_layer() const override { return "cls.predictions.decoder"; }

 private:
  Activation activation_;
  std::shared_ptr<Bert> bert_;
  torch::nn::Linear dense_;
  torch::nn::LayerNorm norm_;
  at::Tensor bias_;
  torch::nn::Linear decoder_ = nullptr;  // null if it is the token embedding
};

std::shared_ptr<PretrainedModel> make_bert(const ConfigFields& fields, const Architecture& architecture) {
  const auto shape = bert_shape(fields);
  const bool is_tied = fields.flag("tie_word_embeddings", true);
  const bool pools = architecture.head == Head::none || architecture.head == Head::sequence;
  const auto bert = std::make_shared<Bert>(shape, pools);
  const Body body{.model = bert, .name = std::string(architecture.prefix), .width = shape.width};
  const auto dropout = fields.probability("classifier_dropout", shape.dropout);
  const auto classifier = [&] {
    return LinearHead{.name = "classifier", .outputs = fields.num_labels(), .dropout = dropout};
  };
  switch (architecture.head) {
    case Head::sequence:
      return pooled_head(body, classifier());
    case Head::tokens:
      return token_head(body, classifier());
    case Head::masked:
      return std::make_shared<BertMaskedHead>(shape, bert, body.name, is_tied);
    default:
      return bert;
  }
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

}  // namespace

std::vector<Architecture> bert_architectures() {
  return {{"BertModel", "bert", Head::none, "bert", make_bert, bert_plan},
          {"BertForMaskedLM", "bert", Head::masked, "bert", make_bert, bert_plan},
          {"BertForSequenceClassification", "bert", Head::sequence, "bert", make_bert, bert_plan},
          {"BertForTokenClassification", "bert", Head::tokens, "bert", make_bert, bert_plan}};
}

}  // namespace hortator::models
