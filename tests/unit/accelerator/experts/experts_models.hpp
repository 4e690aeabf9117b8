#pragma once

#include <ATen/ops/cross_entropy_loss.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <filesystem>
#include <fstream>
#include <hortator/hortator.hpp>
#include <hortator/models/pretrained.hpp>
#include <memory>

#include "support/files.hpp"

namespace hortator::test {

constexpr std::int64_t expert_vocabulary = 29, expert_rows = 12, expert_length = 6, expert_count = 12;

/// A small Mixtral, whose outputs have aux_loss.
inline std::shared_ptr<models::PretrainedModel> mixtral() {
  const OwnFolder folder("mixtral");
  std::filesystem::create_directories(folder.path);
  std::ofstream(folder.path / "config.json") << R"({"architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
    "vocab_size": 29, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "max_position_embeddings": 64, "num_local_experts": 12, "num_experts_per_tok": 2,
    "output_router_logits": true, "router_aux_loss_coef": 0.05, "initializer_range": 0.2})";
  torch::manual_seed(3);
  auto model = models::from_config(folder.path);
  model->train();
  return model;
}

/// A user's own model with mixtures of experts among other layers.
struct ExpertNetImpl : torch::nn::Module {
  explicit ExpertNetImpl(std::int64_t experts = expert_count, std::optional<double> capacity = {}) {
    torch::manual_seed(5);
    table = register_module("table", torch::nn::Embedding(expert_vocabulary, 16));
    const nn::MoEOptions two{.width = 16, .inner = 20, .experts = experts, .capacity_factor = capacity};
    const nn::MoEOptions one{
        .width = 16, .inner = 12, .experts = experts, .top_k = 1, .normalise = false, .capacity_factor = capacity};
    first = register_module("first", nn::MoE(two));
    second = register_module("second", nn::MoE(one));
    head = register_module("head", torch::nn::Linear(16, expert_vocabulary));
  }
  at::Tensor forward(const at::Tensor& ids) {
    auto x = table(ids);
    x = x + first(x);
    return head(x + second(at::tanh(x)));
  }
  torch::nn::Embedding table = nullptr;
  nn::MoE first = nullptr, second = nullptr;
  torch::nn::Linear head = nullptr;
};
TORCH_MODULE(ExpertNet);

/// The rows of a step that belong to part `index` of `parts`.
struct ExpertBatch {
  at::Tensor ids, targets;

  ExpertBatch(std::int64_t step, std::int64_t index, std::int64_t parts, std::int64_t rows = expert_rows) {
    const auto all = (at::arange(rows * (expert_length + 1), at::kLong).square() * (3 + step) + step)
                         .remainder(expert_vocabulary)
                         .view({rows, expert_length + 1})
                         .tensor_split(parts, 0)[static_cast<std::size_t>(index)];
    ids = all.narrow(1, 0, expert_length);
    targets = all.narrow(1, 1, expert_length);
  }
};

inline at::Tensor token_losses(const at::Tensor& logits, const at::Tensor& targets, at::Reduction::Reduction how) {
  return at::cross_entropy_loss(logits.reshape({-1, expert_vocabulary}), targets.reshape({-1}), {}, how);
}

}  // namespace hortator::test
