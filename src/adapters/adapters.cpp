#include "adapters/adapters.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <map>
#include <set>
#include <utility>

#include "adapters/adapter_factors.hpp"
#include "adapters/targets.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/weight_operators.hpp"

namespace hortator::adapters {
namespace {

constexpr std::size_t shown_names = 8;

/// Some names of layers, without numbers: "q_proj, k_proj, ...".
std::string some_names(const std::vector<Layer>& layers) {
  std::vector<std::string> names;
  for (const auto& layer : layers) {
    const auto parts = text::split(layer.name, '.');
    if (parts.empty() || std::ranges::find(names, parts.back()) != names.end()) continue;
    names.push_back(parts.back());
  }
  const bool is_cut = names.size() > shown_names;
  if (is_cut) names.resize(shown_names);
  return text::join(names) + (is_cut ? ", ..." : "");
}

[[noreturn]] void refuse_targets(const LoraOptions& options, const ModelLayers& all) {
  const auto chosen = !options.target_pattern.empty() ? text::quote(options.target_pattern)
                      : options.targets.empty()       ? std::string("empty")
                                                      : text::join(options.targets);
  throw UsageError(
      {.what =
           options.targets.empty() && options.target_pattern.empty()
               ? std::string("LoraOptions::targets is empty, and the model has no layers that peft targets by default")
               : text::concat("No layer of the model fits the targets of the adapter ", text::quote(options.name), ": ",
                              chosen),
       .why = "it would train nothing",
       .hint = all.layers.empty() ? std::string("the model has no linear layers, embeddings or convolutions")
                                  : text::concat("layers have names that end with ", some_names(all.layers))});
}

/// Targets as names: of all linear layers, or the defaults.
void settle_targets(LoraOptions& options, const ModelLayers& all) {
  std::vector<std::string> linear, names;
  for (const auto& layer : all.layers) {
    names.push_back(layer.name);
    if (layer.is_linear_class && !layer.is_scoring) linear.push_back(layer.name);
  }
  if (means_all_linear(options)) options.targets = linear;
  if (options.targets.empty() && options.target_pattern.empty()) options.targets = default_targets(names);
}

void refuse_other_modules(const LoraOptions& options, const ModelLayers& all) {
  for (const auto& name : all.other_modules) {
    if (!is_target(options, name)) continue;
    throw UsageError({.what = text::concat("The module ", text::quote(name), " fits the targets of the adapter ",
                                           text::quote(options.name), ", and is no layer with a matrix of weights"),
                      .why = "adapters change linear layers, embeddings and convolutions",
                      .hint = text::concat("name layers, which end with ", some_names(all.layers))});
  }
}

void warn_of_unknown(const LoraOptions& options, const std::vector<Layer>& layers) {
  for (const auto& target : options.targets) {
    const bool is_known =
        std::ranges::any_of(layers, [&](const Layer& layer) { return ends_with_name(layer.name, target); });
    if (!is_known) log::warn("the target ", text::quote(target), " of the adapter ", options.name, " fits no layer");
  }
}

std::vector<Layer> chosen_layers(LoraOptions& options, const torch::nn::Module& model) {
  const auto all = layers_of(model);
  settle_targets(options, all);
  std::vector<Layer> chosen;
  for (const auto& layer : all.layers)
    if (is_target(options, layer.name)) chosen.push_back(layer);
  refuse_other_modules(options, all);
  if (chosen.empty()) refuse_targets(options, all);
  warn_of_unknown(options, all.layers);
  return chosen;
}

void require_possible(const LoraOptions& options, const Layer& layer) {
  const auto refuse = [&](const char* field, const char* why) {
    throw UsageError({.what = text::concat(field, " is set, and ", text::quote(layer.name), " is ",
                                           layer.kind == LayerKind::embedding ? "an embedding" : "a convolution"),
                      .why = why,
                      .hint = "leave the layer out of the targets, or the option"});
  };
  const bool is_matrix = layer.kind == LayerKind::linear || layer.kind == LayerKind::transposed;
  if (options.use_dora && !is_matrix) refuse("LoraOptions::use_dora", "DoRA is supported for linear layers");
  if (options.lora_bias && layer.kind == LayerKind::embedding) refuse("LoraOptions::lora_bias", "peft has none there");
  if (options.use_dora && interception::is_packed(layer.weight)) {
    throw UsageError({.what = text::concat("LoraOptions::use_dora is set, and quantise() has packed the weight of ",
                                           text::quote(layer.name)),
                      .why = "DoRA needs the lengths of its rows",
                      .hint = "use LoRA or rsLoRA"});
  }
  const auto rank = rank_of(options, layer.name);
  if (rank % layer.groups != 0)
    refuse("A rank that is no multiple of the groups", "lora_B is divided into the same groups");
  if (interception::carries_divided_key(layer.weight)) {
    throw UsageError({.what = text::concat("lora() was called on a model whose weight ",
                                           text::quote(layer.name + ".weight"), " is divided among ranks"),
                      .why = "a prepared model has its parameters already",
                      .hint = "call lora() before prepare()"});
  }
}

/// The values of lora_A and lora_B at first: the product is zero.
std::pair<at::Tensor, at::Tensor> first_factors(const LoraOptions& options, const Layer& layer) {
  const at::NoGradGuard no_grad;
  const auto own = layer.weight.scalar_type();
  const auto type = at::isFloatingType(own) && !at::isReducedFloatingType(own) ? own : at::kFloat;
  const auto numbers = layer.weight.options().dtype(type).requires_grad(false);
  const auto rank = rank_of(options, layer.name);
  if (layer.kind == LayerKind::embedding)
    return {at::zeros({rank, layer.inputs()}, numbers), at::empty({layer.outputs(), rank}, numbers).normal_()};
  std::vector<std::int64_t> a = {rank, layer.inputs()}, b = {layer.outputs(), rank / layer.groups};
  for (std::int64_t dim = 2; dim < layer.weight.dim(); ++dim) {
    a.push_back(layer.weight.size(dim));
    b.push_back(1);
  }
  auto first = at::empty(a, numbers);
  const auto inputs = static_cast<double>(first[0].numel());
  const auto bound = 1 / std::sqrt(inputs);
  if (options.init == LoraInit::gaussian) {
    first.normal_(0, 1 / static_cast<double>(rank));
  } else {
    first.uniform_(-bound, bound);
  }
  return {first, at::zeros(b, numbers)};
}

AdapterFactors& factors(torch::nn::Module& module, const std::string& name) {
  const auto children = module.named_children();
  const auto* found = children.find(name);
  if (found != nullptr) return dynamic_cast<AdapterFactors&>(**found);
  return *module.register_module(name, std::make_shared<AdapterFactors>(name));
}

/// The adapters of a layer, empty ones if it has none yet.
AdaptedWeight& adapted(torch::nn::Module& module, const Layer& layer) {
  const auto* name = layer.kind == LayerKind::embedding ? "lora_embedding_A" : "lora_A";
  const auto children = module.named_children();
  if (const auto* found = children.find(name)) return *dynamic_cast<AdapterFactors&>(**found).adapted();
  auto weight = std::make_shared<AdaptedWeight>(layer);
  const auto first = module.register_module(name, std::make_shared<AdapterFactors>(name, weight));
  first->train(module.is_training());
  weight->follow(*first);
  return *weight;
}

void add_to(torch::nn::Module& model, const Layer& layer, const std::shared_ptr<const LoraOptions>& options) {
  auto& module = layer.module ? *layer.module : module_at(model, layer.name);
  auto& weight = adapted(module, layer);
  auto [a, b] = first_factors(*options, layer);
  Adapter adapter{
      .name = options->name, .a = a, .b = b, .scaling = scaling_of(*options, layer.name), .options = options};
  if (options->lora_bias) adapter.bias = at::zeros({layer.outputs()}, a.options());
  if (options->use_dora) adapter.magnitude = row_lengths(layer, adapter);
  const bool is_direct = layer.kind == LayerKind::embedding;
  factors(module, is_direct ? "lora_embedding_A" : "lora_A").add(options->name, a, is_direct);
  factors(module, is_direct ? "lora_embedding_B" : "lora_B").add(options->name, b, is_direct, adapter.bias);
  if (options->use_dora)
    factors(module, "lora_magnitude_vector").add(options->name, adapter.magnitude, /*is_direct=*/false);
  weight.add(std::move(adapter));
}

/// A weight, and whether it is read as the table of an embedding.
using ReadWeight = std::pair<const c10::TensorImpl*, bool>;

/// Throws if another layer of `known` reads the weight in the same way: operators on it belong to one of them.
void require_own_weight(std::map<ReadWeight, std::string>& known, const Layer& layer) {
  const ReadWeight read(layer.weight.unsafeGetTensorImpl(), layer.kind == LayerKind::embedding);
  const auto [other, is_new] = known.emplace(read, layer.name);
  if (is_new || other->second == layer.name) return;
  throw UsageError({.what = text::concat("The layers ", text::quote(other->second), " and ", text::quote(layer.name),
                                         " share one weight, and both were to have active adapters"),
                    .why = "products with it would be given the adapters of one of them",
                    .hint = "target one of the two, or give each a weight of its own"});
}

/// peft trains a copy of a module of modules_to_save, and a layer that is tied to it keeps its weight; here there is
/// one.
void require_untied(const LoraOptions& options, const torch::nn::Module& model) {
  if (options.modules_to_save.empty()) return;
  const auto own = own_parameters(model, options);
  for (const auto& layer : layers_of(model).layers) {
    if (layer.module) continue;  // its weight is its own
    const auto is_its = [&](const auto& item) { return item.second.is_same(layer.weight); };
    if (std::ranges::none_of(own, is_its) && !is_trained_as_whole(options, layer.name)) continue;
    throw UsageError({.what = text::concat("modules_to_save of the adapter ", text::quote(options.name),
                                           " has the weight of ", text::quote(layer.name), ", which is tied"),
                      .why = "peft trains a copy of one of the layers, and the other keeps its weight",
                      .hint = "give both layers weights of their own (tie_word_embeddings), or target them"});
  }
}

/// peft names the heads of all families, "classifier" and "score", while a model has one.
void require_saved_modules(const LoraOptions& options, const torch::nn::Module& model) {
  const auto modules = model.named_modules("", /*include_self=*/false);
  std::vector<std::string> unknown;
  for (const auto& module : options.modules_to_save) {
    const auto fits = [&](const auto& item) { return item.key().ends_with(module); };
    if (std::ranges::none_of(modules, fits)) unknown.push_back(module);
  }
  if (unknown.empty()) return;
  if (unknown.size() < options.modules_to_save.size()) {
    log::warn("the model has no module ", text::join(unknown), " of modules_to_save of the adapter ", options.name);
    return;
  }
  throw UsageError({.what = text::concat("The model has no module ", text::quote(unknown.front()),
                                         ", which is in modules_to_save of the adapter ", text::quote(options.name)),
                    .why = "it is trained and saved as a whole"});
}

void require_alone(const std::vector<AdaptedLayer>& layers, const LoraOptions& added) {
  const auto trains_model = [](const LoraOptions& one) {
    return one.bias != LoraBias::none || !one.modules_to_save.empty();
  };
  for (const auto& name : names_of(layers)) {
    if (name == added.name) {
      throw UsageError({.what = text::concat("The model has an adapter ", text::quote(name), " already"),
                        .hint = "give the new one another name, or delete_adapter() the other one first"});
    }
    if (!trains_model(added) && !trains_model(options_of(layers, name))) continue;
    throw UsageError({.what = text::concat("The adapters ", text::quote(name), " and ", text::quote(added.name),
                                           " were to be in one model, and one of them has bias or modules_to_save"),
                      .why = "these are parameters of the model itself, which would belong to both adapters",
                      .hint = "delete_adapter() one of them, or use two models"});
  }
}

}  // namespace

std::vector<AdaptedLayer> adapted_layers(const torch::nn::Module& model) {
  std::vector<AdaptedLayer> layers;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    const auto* one = dynamic_cast<const AdapterFactors*>(item.value().get());
    if (one == nullptr || one->adapted() == nullptr) continue;
    const auto dot = item.key().rfind('.');
    layers.push_back({.name = dot == std::string::npos ? "" : item.key().substr(0, dot), .weight = one->adapted()});
  }
  return layers;
}

std::vector<std::string> names_of(const std::vector<AdaptedLayer>& layers) {
  std::vector<std::string> names;
  for (const auto& layer : layers) {
    for (const auto& adapter : layer.weight->adapters())
      if (std::ranges::find(names, adapter.name) == names.end()) names.push_back(adapter.name);
  }
  return names;
}

void require_known(const std::vector<AdaptedLayer>& layers, const std::string& name) {
  const auto known = names_of(layers);
  if (std::ranges::find(known, name) != known.end()) return;
  throw UsageError(
      {.what = text::concat("The model has no adapter ", text::quote(name)),
       .hint = known.empty() ? std::string("add one with lora() or load_adapter()") : text::suggestion(name, known)});
}

const LoraOptions& options_of(const std::vector<AdaptedLayer>& layers, const std::string& name) {
  require_known(layers, name);
  const auto has = [&](const AdaptedLayer& layer) { return layer.weight->find(name) != nullptr; };
  return *std::ranges::find_if(layers, has)->weight->find(name)->options;
}

std::map<std::string, at::Tensor> own_parameters(const torch::nn::Module& model, const LoraOptions& options) {
  std::set<std::string> adapted;
  std::vector<std::string> factors;
  for (const auto& item : model.named_modules("", /*include_self=*/false))
    if (dynamic_cast<const AdapterFactors*>(item.value().get()) != nullptr) factors.push_back(item.key() + ".");
  for (const auto& layer : adapted_layers(model))
    if (layer.weight->find(options.name) != nullptr) adapted.insert(layer.name);
  std::map<std::string, at::Tensor> own;
  for (const auto& item : model.named_parameters()) {
    const auto& name = item.key();
    if (std::ranges::any_of(factors, [&](const auto& prefix) { return name.starts_with(prefix); })) continue;
    const auto dot = name.rfind('.');
    const auto module = dot == std::string::npos ? std::string() : name.substr(0, dot);
    const bool is_bias = name.substr(dot == std::string::npos ? 0 : dot + 1) == "bias";
    const bool is_trained_bias =
        is_bias && (options.bias == LoraBias::all || (options.bias == LoraBias::lora_only && adapted.contains(module)));
    if (is_trained_bias || is_trained_as_whole(options, module)) own.emplace(name, item.value());
  }
  return own;
}

LoraOptions add(torch::nn::Module& model, LoraOptions options) {
  require_valid(options);
  require_alone(adapted_layers(model), options);
  const auto chosen = chosen_layers(options, model);
  std::map<ReadWeight, std::string> known;
  for (const auto& layer : chosen) {
    require_possible(options, layer);
    require_own_weight(known, layer);
  }
  require_untied(options, model);
  require_saved_modules(options, model);
  const auto shared = std::make_shared<const LoraOptions>(options);
  for (const auto& layer : chosen) add_to(model, layer, shared);
  return options;
}

void remove(torch::nn::Module& model, const std::string& name) {
  require_known(adapted_layers(model), name);
  for (const auto& module : model.modules(/*include_self=*/false)) {
    AdaptedWeight* weight = nullptr;
    for (const auto& child : module->children())
      if (const auto* one = dynamic_cast<const AdapterFactors*>(child.get());
          one != nullptr && one->adapted() != nullptr)
        weight = one->adapted();
    if (weight == nullptr || weight->find(name) == nullptr) continue;
    weight->remove(name);
    const bool is_last = weight->adapters().empty();
    for (const auto& child : module->named_children()) {
      auto* one = dynamic_cast<AdapterFactors*>(child.value().get());
      if (one == nullptr) continue;
      const bool has = one->named_children().contains(name) || one->named_parameters(/*recurse=*/false).contains(name);
      if (has) one->remove(name);
      const bool is_empty = one->children().empty() && one->parameters(/*recurse=*/false).empty();
      if (is_last || (is_empty && one->adapted() == nullptr)) module->unregister_module(child.key());
    }
  }
}

void activate(torch::nn::Module& model, const std::vector<std::string>& names, bool trains) {
  const auto layers = adapted_layers(model);
  for (const auto& name : names) require_known(layers, name);
  std::map<ReadWeight, std::string> known;
  for (const auto& layer : layers) {
    const auto has = [&](const std::string& name) { return layer.weight->find(name) != nullptr; };
    if (std::ranges::any_of(names, has)) require_own_weight(known, layer.weight->layer());
  }
  for (const auto& parameter : model.parameters()) parameter.requires_grad_(false);
  for (const auto& layer : layers) {
    layer.weight->set_active(names);
    for (const auto& name : layer.weight->active())
      for (const auto& parameter : layer.weight->find(name)->parameters()) parameter.requires_grad_(trains);
  }
  for (const auto& name : names)
    for (const auto& [path, parameter] : own_parameters(model, options_of(layers, name)))
      parameter.requires_grad_(trains);
}

}  // namespace hortator::adapters
