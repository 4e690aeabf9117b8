#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/models/exported.hpp>
#include <string>
#include <vector>

/// The models of make_files.py.
namespace stored_models {

inline std::filesystem::path file(const std::string& name) {
  return std::filesystem::path(EXPORTED_MODELS) / (name + ".pt2");
}

inline hortator::SafetensorsFile tensors(const std::string& name) {
  return hortator::SafetensorsFile(std::filesystem::path(EXPORTED_MODELS) / (name + ".safetensors"));
}

/// The tensors prefix_0, prefix_1, ...
inline std::vector<at::Tensor> numbered(const hortator::SafetensorsFile& file, const std::string& prefix) {
  std::vector<at::Tensor> found;
  while (file.contains(prefix + std::to_string(found.size())))
    found.push_back(file.get(prefix + std::to_string(found.size())));
  return found;
}

/// Outputs that are tensors in Python.
inline std::vector<at::Tensor> tensors_of(const hortator::ExportedOutputs& outputs) {
  std::vector<at::Tensor> found;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].defined() && !outputs.are_numbers[i]) found.push_back(outputs[i]);
  return found;
}

}  // namespace stored_models
