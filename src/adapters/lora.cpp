#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/lora.hpp>

#include "adapters/adapter_files.hpp"
#include "adapters/adapters.hpp"
#include "adapters/layers.hpp"
#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/file/replaced_file.hpp"
#include "formats/safetensors/writer.hpp"
#include "interception/claims.hpp"
#include "interception/dispatch_keys.hpp"

namespace hortator {
namespace {

namespace fs = std::filesystem;

void require_whole_parameter(const std::string& name, const at::Tensor& tensor) {
  if (!interception::claim_of(tensor) && !interception::carries_divided_key(tensor)) return;
  throw UsageError({.what = text::concat("save_adapter() got a model whose parameter ", text::quote(name),
                                         " is sharded or divided among ranks"),
                    .why = "this rank has only a part of it",
                    .hint = "call save_adapter(accelerator, model, folder) on all ranks"});
}

void write_adapter_weights(const fs::path& folder, const std::map<std::string, at::Tensor>& tensors) {
  std::map<std::string, formats::TensorSpec> specs;
  for (const auto& [name, tensor] : tensors) specs.emplace(name, formats::spec_of(tensor));
  const auto plan = formats::plan_safetensors(specs);
  const auto aside = folder / ".adapter_model.new";
  fs::remove(aside);
  auto file = formats::RawFile::create(aside);
  file.write_at(0, plan.beginning.data(), plan.beginning.size());
  for (const auto& planned : plan.tensors) {
    const auto values = tensors.at(planned.name).detach().cpu().contiguous();
    file.write_at(planned.offset, values.const_data_ptr(), values.nbytes());
  }
  file.sync();
  file.close();
  formats::rename(aside, folder / adapters::weights_name);
}

bool trains_any(const torch::nn::Module& module) {
  for (const auto& layer : adapters::adapted_layers(module)) {
    for (const auto& adapter : layer.weight->adapters())
      if (adapter.a.requires_grad()) return true;
  }
  return false;
}

/// Biases and whole modules cannot be switched off: the model has no others.
void require_switchable(const torch::nn::Module& module) {
  const auto layers = adapters::adapted_layers(module);
  for (const auto& name : adapters::names_of(layers)) {
    const auto& options = adapters::options_of(layers, name);
    if (options.bias == LoraBias::none && options.modules_to_save.empty()) continue;
    throw UsageError({.what = text::concat("The adapter ", text::quote(name),
                                           " was to be switched off, and has bias or modules_to_save"),
                      .why = "these are parameters of the model itself, and no copy of their former values is kept",
                      .hint = "load the base model again"});
  }
}

/// Throws if an adapter that is not among `names` is merged: the model would compute with it.
void require_merged_among(const torch::nn::Module& module, const std::vector<std::string>& names) {
  for (const auto& layer : adapters::adapted_layers(module)) {
    for (const auto& merged : layer.weight->merged()) {
      if (std::ranges::find(names, merged) != names.end()) continue;
      throw UsageError({.what = text::concat("The adapter ", text::quote(merged),
                                             " was to be switched off, and is merged into the weights"),
                        .why = "the model computes with it until it is subtracted again",
                        .hint = "call unmerge_adapters() before"});
    }
  }
}

/// Throws if the weight of an adapted layer is also that of another one, whose results would change as well.
void require_unshared(const torch::nn::Module& module, const std::vector<std::string>& names) {
  const auto all = adapters::layers_of(module).layers;
  for (const auto& adapted : adapters::adapted_layers(module)) {
    const auto has = [&](const std::string& name) { return adapted.weight->find(name) != nullptr; };
    if (std::ranges::none_of(names, has)) continue;
    for (const auto& other : all) {
      if (other.name == adapted.name || !other.weight.is_same(adapted.weight->weight())) continue;
      throw UsageError(
          {.what = text::concat("merge_adapters() was called on a model whose layers ", text::quote(adapted.name),
                                " and ", text::quote(other.name), " share one weight"),
           .why = "the results of both would change",
           .hint = "use the model with the adapter as it is"});
    }
  }
}

}  // namespace

void detail::add_lora(torch::nn::Module& module, const LoraOptions& options) {
  adapters::add(module, options);
  adapters::activate(module, {options.name}, options.is_trainable);
}

void detail::load_adapter(torch::nn::Module& module, const fs::path& folder, const LoadAdapterOptions& options) {
  auto read = adapters::read_config(folder);
  read.name = options.name;
  read.is_trainable = options.is_trainable;
  adapters::add(module, read);
  try {
    adapters::read_values(module, options.name, folder);
  } catch (...) {
    adapters::remove(module, options.name);
    throw;
  }
  adapters::activate(module, {options.name}, options.is_trainable);
}

void detail::save_adapter(const torch::nn::Module& module, const fs::path& folder, const std::string& name) {
  const auto tensors = adapters::stored_tensors(module, name);
  for (const auto& [stored, tensor] : tensors) require_whole_parameter(stored, tensor);
  formats::make_folder_durably(folder);
  write_adapter_weights(folder, tensors);
  const auto config = adapters::config_of(module, name);
  formats::replace_file(folder / adapters::config_name,
                        [&](const formats::RawFile& file) { file.write_at(0, config.data(), config.size()); });
}

void detail::set_adapters(torch::nn::Module& module, const std::vector<std::string>& names) {
  if (names.empty()) require_switchable(module);
  require_merged_among(module, names);
  adapters::activate(module, names, trains_any(module));
}

void detail::delete_adapter(torch::nn::Module& module, const std::string& name) {
  auto others = adapter_names(module);
  std::erase(others, name);
  require_merged_among(module, others);
  const bool trains = trains_any(module);
  auto active = active_adapters(module);
  adapters::remove(module, name);
  std::erase(active, name);
  adapters::activate(module, active, trains);
}

void detail::merge_adapters(torch::nn::Module& module, const std::vector<std::string>& names) {
  const auto layers = adapters::adapted_layers(module);
  const auto chosen = names.empty() ? active_adapters(module) : names;
  for (const auto& name : chosen) adapters::require_known(layers, name);
  require_unshared(module, chosen);
  for (const auto& layer : layers) layer.weight->merge(chosen);
}

void detail::unmerge_adapters(torch::nn::Module& module) {
  for (const auto& layer : adapters::adapted_layers(module)) layer.weight->unmerge();
}

std::vector<std::string> detail::adapter_names(const torch::nn::Module& module) {
  return adapters::names_of(adapters::adapted_layers(module));
}

std::vector<std::string> detail::active_adapters(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& layer : adapters::adapted_layers(module)) {
    for (const auto& name : layer.weight->active())
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> detail::adapted_layers(const torch::nn::Module& module, const std::string& name) {
  const auto layers = adapters::adapted_layers(module);
  adapters::require_known(layers, name);
  std::vector<std::string> names;
  for (const auto& layer : layers)
    if (layer.weight->find(name) != nullptr) names.push_back(layer.name);
  return names;
}

bool detail::enable_adapters(const torch::nn::Module& module, bool on) {
  if (!on) {
    require_switchable(module);
    require_merged_among(module, {});
  }
  bool was_on = true;
  for (const auto& layer : adapters::adapted_layers(module)) {
    was_on = layer.weight->is_enabled();
    layer.weight->enable(on);
  }
  return was_on;
}

AdaptersDisabled::~AdaptersDisabled() {
  if (was_on_) detail::enable_adapters(module_, true);
}

}  // namespace hortator
