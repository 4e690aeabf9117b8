#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Low-rank adapters (LoRA): small matrices that are trained beside the frozen weights of a model. Their files are
/// those of peft, which Hugging Face's libraries read and write.
namespace hortator {

class Accelerator;

/// The values with which a new adapter begins. Each leaves the model's outputs as they are.
enum class LoraInit {
  uniform,   ///< peft's default: lora_A as torch::nn::Linear has it, lora_B zero
  gaussian,  ///< lora_A normal with a deviation of 1 / rank, lora_B zero
};

/// Biases that are trained beside the adapter. They are those of the model itself.
enum class LoraBias { none, all, lora_only };

/// A new adapter. Fields have the defaults of peft's LoraConfig.
struct LoraOptions {
  std::int64_t rank = 8;  ///< peft's r
  double alpha = 8;       ///< outputs are scaled by alpha / rank: peft's lora_alpha
  double dropout = 0;     ///< of what the adapter reads, in training
  /// Layers that get an adapter, by name or the end of a name from a dot on: "q_proj", "layers.0.mlp.up_proj".
  /// {"all-linear"}: all linear layers but that of a causal model's scores. Empty: what peft chooses for models with
  /// layers of these names: q_proj and v_proj, c_attn, query and value, or q_lin and v_lin.
  std::vector<std::string> targets = {};
  std::string target_pattern = {};                     ///< in place of `targets`: a regular expression for whole names
  std::vector<std::string> exclude = {};               ///< layers that get none, as `targets`
  std::string exclude_pattern = {};                    ///< the same, a regular expression
  std::vector<std::int64_t> layers_to_transform = {};  ///< only in layers with these numbers; empty: in all
  std::vector<std::string> layers_pattern = {};        ///< what stands before the number: "layers", "h"
  /// Other ranks and alphas of layers whose names end like this, also by a regular expression: {{"k_proj", 4}}.
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern = {};
  std::vector<std::pair<std::string, double>> alpha_pattern = {};
  bool use_rslora = false;  ///< scales by alpha / sqrt(rank)
  bool use_dora = false;    ///< trains the lengths of the weight's rows as well; of linear layers only
  bool lora_bias = false;   ///< lora_B has a bias
  LoraBias bias = LoraBias::none;
  std::vector<std::string> modules_to_save = {};  ///< modules that are trained and saved as a whole: new heads
  LoraInit init = LoraInit::uniform;
  std::string name = "default";  ///< a model can have several adapters
  bool is_trainable = true;      ///< false: the adapter's parameters are frozen as well
};

/// Options of load_adapter().
struct LoadAdapterOptions {
  std::string name = "default";
  bool is_trainable = false;  ///< true to continue its training
};

/// A layer whose weight is stored as [inputs, outputs], as GPT-2's Conv1D. Derive such a module from it as well.
class HORTATOR_API HasTransposedWeight {
 public:
  virtual ~HasTransposedWeight() = default;
};

/// A model whose layers include some without a weight of their own: the scores of a model with tied embeddings.
class HORTATOR_API HasTiedLayers {
 public:
  virtual ~HasTiedLayers() = default;
  /// By the names that the layers have in this module.
  virtual std::map<std::string, at::Tensor> tied_layers() const = 0;
  /// The name of the layer that scores tokens, which "all-linear" leaves out; empty if there is none.
  virtual std::string scoring_layer() const { return {}; }
};

namespace detail {
template <typename M>
concept AdaptableModule = Module<std::remove_const_t<M>>;

HORTATOR_API void add_lora(torch::nn::Module& module, const LoraOptions& options);
HORTATOR_API void load_adapter(torch::nn::Module& module, const std::filesystem::path& folder,
                               const LoadAdapterOptions& options);
HORTATOR_API void save_adapter(const torch::nn::Module& module, const std::filesystem::path& folder,
                               const std::string& name);
HORTATOR_API void set_adapters(torch::nn::Module& module, const std::vector<std::string>& names);
HORTATOR_API void delete_adapter(torch::nn::Module& module, const std::string& name);
HORTATOR_API void merge_adapters(torch::nn::Module& module, const std::vector<std::string>& names);
HORTATOR_API void unmerge_adapters(torch::nn::Module& module);
HORTATOR_API std::vector<std::string> adapter_names(const torch::nn::Module& module);
HORTATOR_API std::vector<std::string> active_adapters(const torch::nn::Module& module);
HORTATOR_API std::vector<std::string> adapted_layers(const torch::nn::Module& module, const std::string& name);
HORTATOR_API bool enable_adapters(const torch::nn::Module& module, bool on);
}  // namespace detail

/// Adds an adapter to a model, freezes the model's own parameters, and makes the adapter the active one. Each target
/// layer gets two parameters, lora_A [rank, inputs] and lora_B [outputs, rank], and computes what it did plus
/// alpha / rank * lora_B (lora_A x), whatever its forward is: a layer of hortator::models, torch::nn::Linear, Conv1d to
/// Conv3d, Embedding, or a module with a matrix `weight` of your own. Optimizers, gradients and moments then concern
/// only these parameters. Call it before prepare(), and before you construct the optimizer:
///
///     auto net = hortator::models::from_pretrained(folder);
///     hortator::lora(net, {.rank = 16, .alpha = 32, .targets = {"q_proj", "v_proj"}});
///     torch::optim::AdamW adamw(hortator::trainable_parameters(net), 1e-4);
///
/// Names are of modules, and such errors list some that the model has. Local: all ranks that train the model call it,
/// with equal random numbers, or prepare() gives all the first rank's values.
template <detail::AdaptableModule M>
void lora(M& model, const LoraOptions& options = {}) {
  detail::add_lora(detail::module_of(model), options);
}

/// Adds the adapter in a folder with adapter_config.json and adapter_model.safetensors, as peft and save_adapter()
/// write it, and makes it the active one. Throws an error that names what does not fit the model, and one that names a
/// field of adapter_config.json with a value that is not supported. Local.
template <detail::AdaptableModule M>
void load_adapter(M& model, const std::filesystem::path& folder, const LoadAdapterOptions& options = {}) {
  detail::load_adapter(detail::module_of(model), folder, options);
}

/// Writes an adapter to a folder, which peft's PeftModel.from_pretrained reads. One rank calls it. Models whose
/// parameters are sharded or divided are saved by the function that takes an Accelerator.
template <Module M>
void save_adapter(const M& model, const std::filesystem::path& folder, const std::string& name = "default") {
  detail::save_adapter(detail::module_of(model), folder, name);
}

/// Writes the adapter of a prepared model, whatever ZeRO and parallel.tensor have made of its parameters. It must be
/// the one that is trained. @collective
HORTATOR_API void save_adapter(Accelerator& accelerator, const ModelBase& model, const std::filesystem::path& folder,
                               const std::string& name = "default");

/// Makes these adapters the active ones: the layers add the outputs of all of them. None: the model computes as without
/// adapters. Parameters of the active ones are trainable afterwards if those of any adapter were, all others are
/// frozen; so choose before prepare() what is trained.
template <detail::AdaptableModule M>
void set_adapters(M& model, const std::vector<std::string>& names) {
  detail::set_adapters(detail::module_of(model), names);
}
template <detail::AdaptableModule M>
void set_adapter(M& model, const std::string& name) {
  set_adapters(model, {name});
}

/// Removes an adapter and its parameters. Before prepare() only.
template <detail::AdaptableModule M>
void delete_adapter(M& model, const std::string& name) {
  detail::delete_adapter(detail::module_of(model), name);
}

/// Adds the active adapters, or those named, to the weights, so that forward has the speed of the model without
/// adapters. They stay merged, and are not trained, until unmerge_adapters(), which restores the weights up to
/// rounding. Weights that are sharded, offloaded or divided cannot be changed: call it on a model that is not.
template <detail::AdaptableModule M>
void merge_adapters(M& model, const std::vector<std::string>& names = {}) {
  detail::merge_adapters(detail::module_of(model), names);
}
template <detail::AdaptableModule M>
void unmerge_adapters(M& model) {
  detail::unmerge_adapters(detail::module_of(model));
}

/// The names of a model's adapters, in the order in which they were added.
template <Module M>
std::vector<std::string> adapter_names(const M& model) {
  return detail::adapter_names(detail::module_of(model));
}
template <Module M>
std::vector<std::string> active_adapters(const M& model) {
  return detail::active_adapters(detail::module_of(model));
}
/// The names of the layers that an adapter changes.
template <Module M>
std::vector<std::string> adapted_layers(const M& model, const std::string& name = "default") {
  return detail::adapted_layers(detail::module_of(model), name);
}

/// The parameters that are trained, for the optimizer.
template <Module M>
std::vector<at::Tensor> trainable_parameters(const M& model) {
  std::vector<at::Tensor> parameters;
  for (const auto& parameter : detail::module_of(model).parameters())
    if (parameter.requires_grad()) parameters.push_back(parameter);
  return parameters;
}

/// While it lives, the model computes as without adapters: the fixed model of preference optimisation.
class HORTATOR_API AdaptersDisabled {
 public:
  template <Module M>
  explicit AdaptersDisabled(const M& model)
      : module_(detail::module_of(model)), was_on_(detail::enable_adapters(module_, false)) {}
  ~AdaptersDisabled();
  AdaptersDisabled(const AdaptersDisabled&) = delete;
  AdaptersDisabled& operator=(const AdaptersDisabled&) = delete;

 private:
  const torch::nn::Module& module_;
  bool was_on_;
};

}  // namespace hortator
