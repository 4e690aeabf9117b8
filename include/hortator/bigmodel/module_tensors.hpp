#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <hortator/bigmodel/big_models.hpp>
#include <hortator/export.hpp>
#include <optional>
#include <string>
#include <vector>

// The tensors of a module, by their names.

namespace hortator {

/// The bytes of an element; an eighth for a bool, as in Hugging Face Accelerate.
HORTATOR_API Bytes dtype_byte_size(at::ScalarType type);

/// The names of tensors that are the same elements of the same memory: one group for each such tensor, sorted.
HORTATOR_API std::vector<std::vector<std::string>> find_tied_parameters(const torch::nn::Module& module);

/// Options of set_module_tensor_to_device().
struct SetTensorOptions {
  at::Tensor value = {};                     ///< a tensor of the same shape; by default the tensor keeps its values
  std::optional<at::ScalarType> dtype = {};  ///< by default the tensor keeps its type
};

/// Moves one parameter or buffer to a device; at::kMeta takes its values and its memory away. Tensors that are tied to
/// it move as well. Throws UsageError for a name that the module does not have, and for a tensor without values unless
/// one is given.
HORTATOR_API void set_module_tensor_to_device(torch::nn::Module& module, const std::string& name, c10::Device device,
                                              const SetTensorOptions& options = {});

}  // namespace hortator
