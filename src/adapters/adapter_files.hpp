#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <hortator/lora.hpp>
#include <map>
#include <string>

#include "adapters/adapters.hpp"

/// Adapters in files, as peft has them.
namespace hortator::adapters {

inline constexpr const char* config_name = "adapter_config.json";
inline constexpr const char* weights_name = "adapter_model.safetensors";

/// The parameters of an adapter, and of the model that it trains, by their names in the file.
std::map<std::string, at::Tensor> stored_tensors(const torch::nn::Module& model, const std::string& adapter);

/// adapter_config.json of an adapter of the model.
std::string config_of(const torch::nn::Module& model, const std::string& adapter);

/// Reads the options of the adapter in a folder.
LoraOptions read_config(const std::filesystem::path& folder);

/// Reads the values of an adapter that was added with these options. Throws an error that lists what does not fit.
void read_values(const torch::nn::Module& model, const std::string& adapter, const std::filesystem::path& folder);

}  // namespace hortator::adapters
