#include "models/heads.hpp"

#include <ATen/ATen.h>

#include <hortator/error.hpp>
#include <hortator/lora.hpp>
#include <hortator/nn/linear_cross_entropy.hpp>

#include "models/layers/model_inputs.hpp"
#include "models/layers/modules.hpp"
#include "models/layers/projection.hpp"
#include "runtime/sequence/divided_sequence.hpp"

namespace hortator::models {
namespace {

class Headed : public PretrainedModel {
 public:
  explicit Headed(const Body& body) : body_(register_module(body.name, body.model)) {}

 protected:
  std::shared_ptr<PretrainedModel> body_;
};

void require_whole_sequence() {
  if (!runtime::divided_sequence()) return;
  throw UsageError({.what = "ModelInputs::last was set for a sequence that is divided over ranks",
                    .why = "the last tokens of a rank are not those of the sequence",
                    .hint = "leave it out, or end the scope of maybe_context_parallel before"});
}

[[noreturn]] void refuse_targets_of_last_tokens() {
  throw UsageError({.what = "ModelInputs has both last and targets",
                    .why = "last is for logits, and targets replace them by the loss of all tokens",
                    .hint = "set the other targets to -100"});
}

class CausalHead final : public Headed, public HasTiedLayers {
 public:
  CausalHead(const Body& body, std::int64_t vocabulary, at::Tensor tied) : Headed(body), tied_(std::move(tied)) {
    if (!tied_.defined()) lm_head_ = register_module("lm_head", linear(body.width, vocabulary, false));
  }

  ModelOutputs forward(const ModelInputs& inputs) override {
    if (inputs.last && inputs.targets.defined()) refuse_targets_of_last_tokens();
    auto outputs = body_->forward(without_targets(inputs));
    auto hidden = outputs.last_hidden_state;
    if (inputs.last && *inputs.last < hidden.size(1)) {
      require_whole_sequence();
      hidden = hidden.narrow(1, hidden.size(1) - *inputs.last, *inputs.last);
    }
    predict_tokens(hidden, tied_.defined() ? tied_ : lm_head_->weight, {}, inputs, outputs);
    return outputs;
  }

  std::vector<at::Tensor> used_after_layers() const override {
    return tied_.defined() ? std::vector{tied_} : std::vector<at::Tensor>();
  }
  std::map<std::string, at::Tensor> tied_layers() const override {
    if (!tied_.defined()) return {};
    return {{"lm_head", tied_}};
  }
  std::string scoring_layer() const override { return "lm_head"; }

 private:
  at::Tensor tied_;  // a parameter of the body, so not registered again
  torch::nn::Linear lm_head_ = nullptr;
};

class LinearHeaded : public Headed {
 public:
  LinearHeaded(const Body& body, const LinearHead& head)
      : Headed(body),
        layer_(place(*this, head.name, linear(body.width, head.outputs, head.bias))),
        dropout_(head.dropout) {}

 protected:
  at::Tensor scores(const at::Tensor& hidden) { return project(at::dropout(hidden, dropout_, is_training()), layer_); }

 private:
  torch::nn::Linear layer_;
  double dropout_;
};

class TokenHead final : public LinearHeaded {
 public:
  using LinearHeaded::LinearHeaded;
  ModelOutputs forward(const ModelInputs& inputs) override {
    auto outputs = body_->forward(inputs);
    outputs.logits = scores(outputs.last_hidden_state);
    return outputs;
  }
};

class PooledHead final : public LinearHeaded {
 public:
  using LinearHeaded::LinearHeaded;
  ModelOutputs forward(const ModelInputs& inputs) override {
    auto outputs = body_->forward(inputs);
    outputs.logits = scores(outputs.pooler_output);
    return outputs;
  }
};

class LastTokenHead final : public LinearHeaded {
 public:
  LastTokenHead(const Body& body, const LinearHead& head, std::optional<std::int64_t> pad_token)
      : LinearHeaded(body, head), pad_token_(pad_token) {}

  ModelOutputs forward(const ModelInputs& inputs) override {
    auto outputs = body_->forward(inputs);
    outputs.logits = scores(runtime::last_token(outputs.last_hidden_state, is_token(inputs.input_ids)));
    return outputs;
  }

 private:
  at::Tensor is_token(const at::Tensor& ids) const {
    if (pad_token_) return ids.ne(*pad_token_);
    if (ids.size(0) == 1) return at::ones_like(ids, at::kBool);
    throw UsageError({.what = "A batch of several texts came to a model without a pad_token_id",
                      .why = "the last token of each text is found by the padding that follows it",
                      .hint = "add pad_token_id to its config.json"});
  }

  std::optional<std::int64_t> pad_token_;
};

}  // namespace

void predict_tokens(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias,
                    const ModelInputs& inputs, ModelOutputs& outputs) {
  if (inputs.targets.defined()) {
    outputs.loss_sum = nn::linear_cross_entropy(hidden, weight, inputs.targets, {.bias = bias, .mean = false});
  } else {
    outputs.logits = bias.defined() ? at::linear(hidden, weight, bias) : project(hidden, weight);
  }
}

std::shared_ptr<PretrainedModel> causal_head(const Body& body, std::int64_t vocabulary, const at::Tensor& tied) {
  return std::make_shared<CausalHead>(body, vocabulary, tied);
}

std::shared_ptr<PretrainedModel> token_head(const Body& body, const LinearHead& head) {
  return std::make_shared<TokenHead>(body, head);
}

std::shared_ptr<PretrainedModel> last_token_head(const Body& body, const LinearHead& head,
                                                 std::optional<std::int64_t> pad_token) {
  return std::make_shared<LastTokenHead>(body, head, pad_token);
}

std::shared_ptr<PretrainedModel> pooled_head(const Body& body, const LinearHead& head) {
  return std::make_shared<PooledHead>(body, head);
}

}  // namespace hortator::models
