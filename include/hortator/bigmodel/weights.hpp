#pragma once

#include <torch/nn/module.h>

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <filesystem>
#include <hortator/bigmodel/big_models.hpp>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hortator {

/// Names of one tree of modules as names of another. A rule {from, to} puts `to` in the place of a name's first parts,
/// those between points, where they are `from`; the rest stays:
///
///     {"model", ""}                                        model.norm.weight -> norm.weight
///     {"", "encoder"}                                      norm.weight -> encoder.norm.weight
///     {"layers.*.self_attn.q_proj", "blocks.*.query"}      * stands for one part
///     {"**.gamma", "**.weight"}                            ** for any number of them, only in front
///
/// All rules are applied, one after the other, each at most once.
class HORTATOR_API Renaming {
 public:
  struct Rule {
    std::string from = {};
    std::string to = {};
  };

  Renaming() = default;
  Renaming(std::initializer_list<Rule> rules) : Renaming(std::vector<Rule>(rules)) {}
  /// Throws UsageError for rules whose sides have not as many stars.
  explicit Renaming(std::vector<Rule> rules);

  std::string operator()(std::string_view name) const;
  /// The way back.
  Renaming reversed() const;

 private:
  std::vector<Rule> rules_;
};

/// Options of Accelerator::save_model.
struct SaveModelOptions {
  /// Files grow no larger, except for a single tensor that is larger: "200MB", "5GiB".
  std::string max_shard_size = "10GB";
  /// Files of safetensors, which transformers loads; false: of torch.save, for torch.load(weights_only=True).
  bool safe_serialization = true;
  Renaming rename = {};  ///< from the model's names to those in the files
  /// Only parameters that are trained: those of adapters, without the frozen ones of the base model and without
  /// buffers. Load them into the base model with {.strict = false}.
  bool only_trainable = false;
  /// The type of floating-point tensors in the files; the model keeps its own. By default each is written as it is.
  std::optional<c10::ScalarType> dtype = {};
};

/// Options of load_checkpoint_in_model.
struct LoadWeightsOptions {
  Renaming rename = {};  ///< from the names in the files to the model's
  /// Every name must be on both sides. false: what is missing stays as it is, what is unexpected is not read, and both
  /// are warned of. Other shapes are an error in any case.
  bool strict = true;
  /// The type that the model's floating-point parameters and buffers get first. By default each stays as it is. Values
  /// are converted on their way between floating-point types, and to wider whole numbers; no more than a few MiB are
  /// held for that. Before prepare() alone.
  std::optional<c10::ScalarType> dtype = {};
  /// Modules and tensors that become float32 in place of `dtype`, by name or a part of it ("norm").
  std::vector<std::string> keep_in_fp32_modules = {};
  std::size_t model = 0;  ///< of a checkpoint of save_state: which of its models
  /// Where parts are loaded, by name: {{"", DevicePlacement::parse("cuda:0")}}. By default each part stays where it is.
  /// Parts on disk are written to `offload_folder`; they have no values until dispatch_model() gets that folder. Only
  /// for one process: an Accelerator's load_checkpoint_in_model() refuses it.
  DeviceMap device_map = {};
  /// A folder for parts on disk, as Accelerate's offload_state_dict() writes it. An index.json in it is replaced.
  std::filesystem::path offload_folder = {};
};

namespace detail {
HORTATOR_API void load_weights(torch::nn::Module& module, const std::filesystem::path& checkpoint,
                               const LoadWeightsOptions& options);
}  // namespace detail

/// Fills a model with weights from a file of safetensors or of torch.save (.pt, .bin), an index of several
/// (.index.json), a folder with one of them, or a folder of save_state(). Names that are missing, unexpected, or of
/// another shape are all in one error, before anything is changed; so are tied parameters whose values differ in the
/// file, after that. By this process alone; Accelerator::load_checkpoint_in_model does it on all ranks together.
template <Module M>
void load_checkpoint_in_model(M& model, const std::filesystem::path& checkpoint,
                              const LoadWeightsOptions& options = {}) {
  detail::load_weights(detail::module_of(model), checkpoint, options);
}

}  // namespace hortator
