#include "adapters/layers.hpp"

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <hortator/lora.hpp>
#include <hortator/nn/moe.hpp>
#include <optional>

#include "adapters/adapter_factors.hpp"
#include "interception/weight_operators.hpp"

namespace hortator::adapters {
namespace {

template <typename Convolution>
std::optional<std::int64_t> groups_of(const torch::nn::Module& module) {
  const auto* layer = module.as<Convolution>();
  return layer == nullptr ? std::nullopt : std::optional(layer->options.groups());
}

std::optional<std::int64_t> groups_of_convolution(const torch::nn::Module& module) {
  if (const auto groups = groups_of<torch::nn::Conv1d>(module)) return groups;
  if (const auto groups = groups_of<torch::nn::Conv2d>(module)) return groups;
  return groups_of<torch::nn::Conv3d>(module);
}

at::Tensor own_weight(const torch::nn::Module& module) {
  const auto own = module.named_parameters(/*recurse=*/false);
  const auto* weight = own.find("weight");
  return weight == nullptr ? at::Tensor() : *weight;
}

/// Nothing for modules that no adapter can change.
std::optional<Layer> layer_of(const std::string& name, const std::shared_ptr<torch::nn::Module>& module) {
  const auto weight = own_weight(*module);
  if (!weight.defined() || (!weight.is_floating_point() && !interception::is_packed(weight))) return {};
  Layer layer{.name = name, .module = module, .weight = weight, .sizes = interception::sizes_of_weight(weight)};
  if (const auto groups = groups_of_convolution(*module)) {
    layer.kind = LayerKind::convolution;
    layer.groups = *groups;
    return layer;
  }
  if (weight.dim() != 2) return {};
  const bool is_transposed = dynamic_cast<const HasTransposedWeight*>(module.get()) != nullptr;
  if (is_transposed) layer.kind = LayerKind::transposed;
  if (module->as<torch::nn::Embedding>() != nullptr) layer.kind = LayerKind::embedding;
  layer.is_linear_class = is_transposed || module->as<torch::nn::Linear>() != nullptr;
  return layer;
}

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

void add_tied_layers(const torch::nn::Module& model, ModelLayers& all) {
  const auto add = [&](const std::string& prefix, const HasTiedLayers& tied) {
    const auto find = [&](const std::string& name) {
      return std::ranges::find_if(all.layers, [&](const Layer& one) { return one.name == joined(prefix, name); });
    };
    for (const auto& [name, weight] : tied.tied_layers()) {
      if (find(name) == all.layers.end())
        all.layers.push_back(
            {.name = joined(prefix, name), .weight = weight, .sizes = interception::sizes_of_weight(weight)});
      std::erase(all.other_modules, joined(prefix, name));
    }
    if (const auto scoring = find(tied.scoring_layer()); scoring != all.layers.end()) scoring->is_scoring = true;
  };
  if (const auto* tied = dynamic_cast<const HasTiedLayers*>(&model)) add("", *tied);
  for (const auto& item : model.named_modules("", /*include_self=*/false))
    if (const auto* tied = dynamic_cast<const HasTiedLayers*>(item.value().get())) add(item.key(), *tied);
}

}  // namespace

std::int64_t Layer::inputs() const {
  if (kind == LayerKind::convolution) return sizes.at(1) * groups;
  return sizes.at(kind == LayerKind::linear ? 1 : 0);
}

std::int64_t Layer::outputs() const {
  return sizes.at(kind == LayerKind::transposed || kind == LayerKind::embedding ? 1 : 0);
}

ModelLayers layers_of(const torch::nn::Module& model) {
  ModelLayers all;
  std::vector<std::string> adapters;  // prefixes of their modules
  std::vector<std::string> routers;   // of mixtures of experts, which are no linear layers for peft
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    const auto& name = item.key();
    if (dynamic_cast<const AdapterFactors*>(item.value().get()) != nullptr) adapters.push_back(name + ".");
    if (std::ranges::any_of(adapters, [&](const auto& prefix) { return (name + ".").starts_with(prefix); })) continue;
    if (item.value()->as<nn::MoE>() != nullptr) routers.push_back(name + ".gate");
    if (auto layer = layer_of(name, item.value())) {
      if (std::ranges::find(routers, name) != routers.end()) layer->is_linear_class = false;
      all.layers.push_back(std::move(*layer));
    } else {
      all.other_modules.push_back(name);
    }
  }
  add_tied_layers(model, all);
  return all;
}

torch::nn::Module& module_at(torch::nn::Module& root, const std::string& path) {
  const auto point = path.find('.');
  const auto name = path.substr(0, point);
  const auto children = root.named_children();
  const auto* found = children.find(name);
  auto child = found != nullptr ? *found : nullptr;
  if (!child) {
    child = root.register_module(name, std::make_shared<torch::nn::Module>(name));
    child->train(root.is_training());
  }
  return point == std::string::npos ? *child : module_at(*child, path.substr(point + 1));
}

}  // namespace hortator::adapters
