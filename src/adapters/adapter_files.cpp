#include "adapters/adapter_files.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <vector>

#include "adapters/adapter_config.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"
#include "weights/weight_source.hpp"

namespace hortator::adapters {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t max_config_bytes = std::uint64_t{1} << 24;
constexpr std::string_view model_prefix = "base_model.model.";

std::string stored_name(const std::string& layer, const std::string& rest) {
  return text::concat(model_prefix, layer, ".", rest);
}

void put_factors(std::map<std::string, at::Tensor>& stored, const AdaptedLayer& layer, const Adapter& adapter) {
  const bool is_embedding = layer.weight->layer().kind == LayerKind::embedding;
  stored.emplace(stored_name(layer.name, is_embedding ? "lora_embedding_A" : "lora_A.weight"), adapter.a);
  stored.emplace(stored_name(layer.name, is_embedding ? "lora_embedding_B" : "lora_B.weight"), adapter.b);
  if (adapter.bias.defined()) stored.emplace(stored_name(layer.name, "lora_B.bias"), adapter.bias);
  if (adapter.magnitude.defined()) stored.emplace(stored_name(layer.name, "lora_magnitude_vector"), adapter.magnitude);
}

/// peft puts the layer itself below its adapters: "q_proj.base_layer.bias".
std::string stored_name_of_own(const std::string& parameter, const std::vector<AdaptedLayer>& layers,
                               const std::string& adapter) {
  const auto dot = parameter.rfind('.');
  const auto module = dot == std::string::npos ? std::string() : parameter.substr(0, dot);
  const bool is_adapted = std::ranges::any_of(layers, [&](const AdaptedLayer& layer) {
    return layer.name == module && layer.weight->find(adapter) != nullptr;
  });
  if (is_adapted) return stored_name(module, "base_layer." + parameter.substr(dot + 1));
  return text::concat(model_prefix, parameter);
}

/// The file with the values: peft's older ones are of torch.save.
fs::path weights_in(const fs::path& folder) {
  for (const auto* name : {weights_name, "adapter_model.bin"})
    if (fs::exists(folder / name)) return folder / name;
  throw formats::FileError({.what = text::concat(folder, " has no ", weights_name),
                            .why = "it holds the matrices of the adapter",
                            .hint = "name a folder that peft's or Hortator's save_adapter() has written"});
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return text::concat("[", text::join(shape), "]"); }

constexpr std::size_t shown_faults = 6;

void require_no_faults(const std::vector<std::string>& faults, const fs::path& file) {
  if (faults.empty()) return;
  const std::vector<std::string> some(
      faults.begin(), faults.begin() + static_cast<std::ptrdiff_t>(std::min(faults.size(), shown_faults)));
  const auto more = faults.size() > some.size() ? text::concat("; and ", faults.size() - some.size(), " more") : "";
  throw UsageError(
      {.what = text::concat("The adapter in ", file, " does not fit the model: ", text::join(some, "; "), more),
       .why = "it was made for another base model, or its adapter_config.json is not its own",
       .hint = "load it into the model for which it was trained"});
}

/// The model's own parameter that a name in the file means: trained ones, or an embedding that peft has stored with its
/// adapter. Undefined for other names.
at::Tensor own_parameter(const torch::nn::Module& model, std::string name) {
  name.erase(0, model_prefix.size());
  if (const auto at = name.find(".base_layer."); at != std::string::npos)
    name.erase(at, std::string(".base_layer").size());
  const auto parameters = model.named_parameters();
  if (const auto* found = parameters.find(name)) return *found;
  for (const auto& layer : layers_of(model).layers) {
    if (layer.name + ".weight" == name) return layer.weight;  // a tied one
    if (layer.module || layer.name + ".bias" != name) continue;
    // BERT's tied scores share the bias of the module around them.
    const auto dot = layer.name.rfind('.');
    const auto around = dot == std::string::npos ? std::string("bias") : layer.name.substr(0, dot) + ".bias";
    if (const auto* found = parameters.find(around)) return *found;
  }
  return {};
}

}  // namespace

std::map<std::string, at::Tensor> stored_tensors(const torch::nn::Module& model, const std::string& adapter) {
  const auto layers = adapted_layers(model);
  const auto& options = options_of(layers, adapter);
  std::map<std::string, at::Tensor> stored;
  for (const auto& layer : layers)
    if (const auto* one = layer.weight->find(adapter)) put_factors(stored, layer, *one);
  for (const auto& [name, tensor] : own_parameters(model, options))
    stored.emplace(stored_name_of_own(name, layers, adapter), tensor);
  return stored;
}

std::string config_of(const torch::nn::Module& model, const std::string& adapter) {
  const auto layers = adapted_layers(model);
  const bool is_transposed = std::ranges::any_of(layers, [&](const AdaptedLayer& layer) {
    return layer.weight->layer().kind == LayerKind::transposed && layer.weight->find(adapter) != nullptr;
  });
  return config_json(options_of(layers, adapter), is_transposed);
}

LoraOptions read_config(const fs::path& folder) {
  const auto file = folder / config_name;
  if (!fs::exists(file)) {
    throw formats::FileError({.what = text::concat(folder, " has no ", config_name),
                              .why = "it describes the adapter",
                              .hint = "name a folder that peft's save_pretrained() or save_adapter() has written"});
  }
  return parse_config(formats::read_text(file, max_config_bytes), file);
}

void read_values(const torch::nn::Module& model, const std::string& adapter, const fs::path& folder) {
  const auto file = weights_in(folder);
  const auto source = weights::open_weights(file);
  const auto wanted = stored_tensors(model, adapter);
  const auto canonical = [](std::string name) {  // DoRA's vectors were parameters, and then modules
    if (name.ends_with("lora_magnitude_vector.weight")) name.resize(name.size() - std::string(".weight").size());
    return name;
  };
  std::map<std::string, std::string> stored;  // as they are in the file, by the names of today
  std::vector<std::string> faults;
  for (const auto& name : source->names()) stored.emplace(canonical(name), name);
  std::map<std::string, at::Tensor> targets;
  for (const auto& [name, own] : stored) {
    // peft's own copies of a saved module, which it writes beside the module for the biases of all layers
    if (name.find(".original_module.") != std::string::npos || name.find(".modules_to_save.") != std::string::npos)
      continue;
    const auto found = wanted.find(name);
    const auto target = found != wanted.end() ? found->second : own_parameter(model, name);
    if (!target.defined()) {
      faults.push_back(text::concat("the model has nothing for ", text::quote(name)));
    } else if (const auto spec = source->spec(own); spec.shape != target.sizes().vec()) {
      faults.push_back(text::concat(text::quote(name), " has the shape ", shape_text(spec.shape), ", expected ",
                                    shape_text(target.sizes().vec())));
    } else {
      targets.emplace(own, target);
    }
  }
  // peft up to 0.20 leaves the biases of "lora_only" out of its files, and keeps the model's when it reads them.
  const bool may_lack_biases = options_of(adapted_layers(model), adapter).bias == LoraBias::lora_only;
  for (const auto& [name, tensor] : wanted)
    if (!stored.contains(name) && !(may_lack_biases && name.ends_with(".base_layer.bias")))
      faults.push_back(text::concat(text::quote(name), " is missing"));
  require_no_faults(faults, file);
  const at::NoGradGuard no_grad;
  for (const auto& [name, target] : targets) target.detach().copy_(source->tensor(name));
}

}  // namespace hortator::adapters
