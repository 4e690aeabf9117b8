#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <hortator/export.hpp>
#include <hortator/parallel/pipeline.hpp>
#include <hortator/parallel/tensor_plan.hpp>
#include <hortator/training/recomputable_layers.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// Models of Hugging Face checkpoints: modules of LibTorch with the parameter names of the files.
namespace hortator::models {

class KeyValueCache;

/// What a model reads. Text models take `input_ids`, image models `pixel_values`; tensors that are left out have the
/// defaults of transformers.
struct ModelInputs {
  at::Tensor input_ids = {};              ///< [batch, time], int64
  at::Tensor attention_mask = {};         ///< [batch, time], with a cache [batch, all]; 0 marks padding
  at::Tensor token_type_ids = {};         ///< [batch, time]; 0 by default
  at::Tensor position_ids = {};           ///< [batch, time]; counted from the tokens in the cache by default
  at::Tensor document_ids = {};           ///< [batch, time], of a causal model: a token sees only those with its number
  at::Tensor pixel_values = {};           ///< [batch, channels, height, width]
  KeyValueCache* cache = nullptr;         ///< of a causal model: earlier tokens; those of this call are appended
  std::optional<std::int64_t> last = {};  ///< of a causal model: logits for only that many last tokens
  /// [batch, time], for a causal or masked language model: the token to predict at each place (of a causal model the
  /// next one, as PackedTokens::targets), -100 where none is. The model then computes the loss, not the logits, which
  /// take more memory than all else in training.
  at::Tensor targets = {};
};

/// What a model computes. Tensors that it does not have are undefined.
struct ModelOutputs {
  at::Tensor logits = {};             ///< of the model's head
  at::Tensor last_hidden_state = {};  ///< [batch, time, width], of images [batch, channels, height, width] or patches
  at::Tensor pooler_output = {};      ///< one vector a row
  /// nn::load_balancing_loss of the layers of a mixture of experts whose config.json has output_router_logits. Add it
  /// to the loss with the coefficient ModelConfig::router_aux_loss_coef.
  at::Tensor aux_loss = {};
  at::Tensor loss_sum = {};  ///< of ModelInputs::targets: the sum over the targets that are not -100

  auto fields() { return std::tie(logits, last_hidden_state, pooler_output, aux_loss, loss_sum); }
};

/// What a program needs to know about a model.
struct ModelConfig {
  std::string architecture = {};                 ///< "LlamaForCausalLM"
  std::string json = {};                         ///< the text of config.json
  std::string generation_json = {};              ///< the text of generation_config.json; empty if there is none
  std::int64_t vocabulary = 0;                   ///< number of tokens; 0 for image models
  std::int64_t max_positions = 0;                ///< the longest text that the model was made for; 0 for image models
  bool is_causal = false;                        ///< it predicts the next token
  bool has_learned_positions = false;            ///< max_positions is a limit
  std::int64_t num_labels = 0;                   ///< outputs of a classification head
  std::vector<std::int64_t> eos_token_ids = {};  ///< tokens that end a text
  std::optional<std::int64_t> pad_token_id = {};
  double router_aux_loss_coef = 0;  ///< of a mixture of experts
};

/// A model that was made from a config.json.
class HORTATOR_API PretrainedModel : public torch::nn::Module,
                                     public HasTensorPlan,
                                     public RecomputableLayers,
                                     public HasPipelineLayers {
 public:
  virtual ModelOutputs forward(const ModelInputs& inputs) = 0;

  const ModelConfig& config() const { return config_; }
  void set_config(ModelConfig config) { config_ = std::move(config); }

  /// Whether training keeps only what lies between layers, and backward recomputes the rest (hortator::recompute).
  void set_recompute_layers(bool on);
  bool recomputes_layers() const { return recomputes_layers_; }

  // These describe this module's own layers, not those of a model within it.
  std::vector<std::string> classes_of_layers() const override { return {}; }
  std::vector<std::string> names_of_layers() const override { return {}; }
  std::vector<std::string> pipeline_layers() const override { return names_of_layers(); }
  void recompute_own_layers(bool on) override { recomputes_layers_ = on; }

  /// How its layers are divided along parallel.tensor. Empty for ResNets, which are not.
  TensorPlan tensor_plan() const override;

 private:
  ModelConfig config_;
  bool recomputes_layers_ = false;
};

}  // namespace hortator::models
