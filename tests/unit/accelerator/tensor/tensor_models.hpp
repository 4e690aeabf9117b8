#pragma once

#include <torch/nn/functional/loss.h>
#include <torch/utils.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <hortator/hortator.hpp>
#include <hortator/models/pretrained.hpp>
#include <map>
#include <memory>
#include <string>

#include "support/files.hpp"

namespace hortator::test {

constexpr std::int64_t tensor_vocabulary = 40, tensor_length = 6, tensor_rows = 4;

/// Small models of the families, by the texts of their config.json.
inline const std::map<std::string, std::string>& tensor_configs() {
  static const std::map<std::string, std::string> all = {
      {"llama", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 40, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": false})"},
      {"llama of 43 tokens", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 43,
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": true})"},
      {"qwen3", R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 40, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 1,
        "head_dim": 8, "max_position_embeddings": 64, "tie_word_embeddings": true})"},
      {"gpt2", R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 40, "n_embd": 32,
        "n_layer": 2, "n_head": 4, "n_positions": 64, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0})"},
      {"bert", R"({"architectures": ["BertForMaskedLM"], "model_type": "bert", "vocab_size": 40, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64,
        "attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0})"},
      {"mistral", R"({"architectures": ["MistralForCausalLM"], "model_type": "mistral", "vocab_size": 40,
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "sliding_window": 3, "max_position_embeddings": 64, "tie_word_embeddings": false})"},
      {"qwen2", R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 40, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 64, "tie_word_embeddings": true})"},
      {"distilbert", R"({"architectures": ["DistilBertForMaskedLM"], "model_type": "distilbert", "vocab_size": 40,
        "dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64,
        "attention_dropout": 0.0, "dropout": 0.0})"},
      {"vit", R"({"architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 8, "patch_size": 4,
        "num_channels": 3, "attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0})"}};
  return all;
}

inline std::shared_ptr<models::PretrainedModel> tensor_model(const std::string& family) {
  const OwnFolder folder("tensor-model");
  std::filesystem::create_directories(folder.path);
  std::ofstream(folder.path / "config.json") << tensor_configs().at(family);
  torch::manual_seed(3);
  auto model = models::from_config(folder.path);
  model->train();
  return model;
}

/// The rows of one step that belong to part `index` of `parts`.
struct TokenRows {
  at::Tensor ids, targets;

  TokenRows(std::int64_t step, std::int64_t index, std::int64_t parts, std::int64_t length = tensor_length) {
    const auto all = (at::arange(tensor_rows * (length + 1), at::kLong) * (7 + step) + step)
                         .remainder(tensor_vocabulary)
                         .view({tensor_rows, length + 1})
                         .chunk(parts, 0)[static_cast<std::size_t>(index)];
    ids = all.narrow(1, 0, length);
    targets = all.narrow(1, 1, length).reshape({-1});
  }
};

template <typename Model>
at::Tensor token_loss(Model& model, const TokenRows& rows) {
  const auto outputs = model(models::ModelInputs{.input_ids = rows.ids});
  return torch::nn::functional::cross_entropy(outputs.logits.view({-1, outputs.logits.size(-1)}), rows.targets);
}

/// The images of one step that belong to part `index` of `parts`, with their classes, 0 or 1.
struct ImageRows {
  at::Tensor pixels, targets;

  ImageRows(std::int64_t step, std::int64_t index, std::int64_t parts) {
    const auto number = static_cast<std::size_t>(index);
    const auto all = at::sin(at::arange(tensor_rows * 3 * 8 * 8, at::kFloat) * 0.37 + static_cast<double>(step));
    pixels = all.view({tensor_rows, 3, 8, 8}).chunk(parts, 0)[number];
    targets = (at::arange(tensor_rows, at::kLong) + step).remainder(2).chunk(parts, 0)[number];
  }
};

template <typename Model>
at::Tensor image_loss(Model& model, const ImageRows& rows) {
  return torch::nn::functional::cross_entropy(model(models::ModelInputs{.pixel_values = rows.pixels}).logits,
                                              rows.targets);
}

}  // namespace hortator::test
