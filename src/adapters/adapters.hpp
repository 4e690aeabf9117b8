#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <hortator/lora.hpp>
#include <map>
#include <string>
#include <vector>

#include "adapters/adapted_weight.hpp"

/// The adapters of a whole model.
namespace hortator::adapters {

/// A layer with adapters.
struct AdaptedLayer {
  std::string name = {};
  AdaptedWeight* weight = nullptr;
};

/// In the order of the model's modules.
std::vector<AdaptedLayer> adapted_layers(const torch::nn::Module& model);

/// The names of all adapters, in the order in which they were added.
std::vector<std::string> names_of(const std::vector<AdaptedLayer>& layers);

/// The options of an adapter. Throws UsageError, with the known names, if the model has none of this name.
const LoraOptions& options_of(const std::vector<AdaptedLayer>& layers, const std::string& name);
void require_known(const std::vector<AdaptedLayer>& layers, const std::string& name);

/// The parameters of the model itself that an adapter trains: biases, and modules_to_save.
std::map<std::string, at::Tensor> own_parameters(const torch::nn::Module& model, const LoraOptions& options);

/// Adds an adapter with first values, without making it active. Returns the options with their targets as names of
/// layers.
LoraOptions add(torch::nn::Module& model, LoraOptions options);

void remove(torch::nn::Module& model, const std::string& name);

/// Makes adapters the active ones. `trains`: whether their parameters, and what else they train, are trainable.
void activate(torch::nn::Module& model, const std::vector<std::string>& names, bool trains);

}  // namespace hortator::adapters
