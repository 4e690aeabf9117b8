#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hortator::adapters {

enum class LayerKind {
  linear,      ///< weight [outputs, inputs]
  transposed,  ///< weight [inputs, outputs]
  embedding,
  convolution
};

/// A layer that an adapter can change.
struct Layer {
  std::string name = {};
  std::shared_ptr<torch::nn::Module> module = {};  ///< null for a tied layer that the model does not have as a module
  at::Tensor weight = {};
  std::vector<std::int64_t> sizes = {};  ///< of the weight, also if its memory is packed
  LayerKind kind = LayerKind::linear;
  std::int64_t groups = 1;       ///< of a convolution
  bool is_linear_class = false;  ///< one that "all-linear" means
  bool is_scoring = false;       ///< it scores a language model's tokens

  std::int64_t inputs() const;
  std::int64_t outputs() const;
};

struct ModelLayers {
  std::vector<Layer> layers;
  std::vector<std::string> other_modules;  ///< names of modules that no adapter can change
};

/// The layers of a model, without those of its adapters, in the order of its modules; tied ones last.
ModelLayers layers_of(const torch::nn::Module& model);

/// The module at a path, with plain modules made in between as needed.
torch::nn::Module& module_at(torch::nn::Module& root, const std::string& path);

}  // namespace hortator::adapters
