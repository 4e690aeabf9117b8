#pragma once

#include <torch/nn/module.h>

#include <map>
#include <string>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"

/// Sizes and placements of models, computed on plain trees that modules, stored files and tests can all build.
namespace hortator::bigmodel {

struct TreeTensor {
  std::string name = {};  ///< within its module
  formats::TensorSpec spec = {};
};

struct TreeNode {
  std::string name = {};  ///< within its parent
  std::string type = {};  ///< the module's class, without namespace and without LibTorch's "Impl"
  std::vector<TreeTensor> parameters = {};
  std::vector<TreeTensor> buffers = {};
  std::vector<TreeNode> children = {};
};

struct ModuleTree {
  TreeNode root = {};
  /// For tensors with several names: each further name, mapped to the first one in the tree's order.
  std::map<std::string, std::string> ties = {};
};

/// `name` below `prefix`: "layers.0" and "weight" give "layers.0.weight".
std::string joined(const std::string& prefix, const std::string& name);
/// Whether `name` is the module or tensor `whole`, or below it. Everything is below "".
bool is_within(const std::string& name, const std::string& whole);

ModuleTree tree_of(const torch::nn::Module& module);

}  // namespace hortator::bigmodel
