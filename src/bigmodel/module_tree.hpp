#pragma once

#include <torch/nn/module.h>

#include <hortator/bigmodel/big_models.hpp>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
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

/// Bytes of an element of this type; an eighth for a bool.
Bytes element_bytes(at::ScalarType type);

/// The bytes of each tensor, and of each module with tensors below it.
class ModuleSizes {
 public:
  ModuleSizes(const ModuleTree& tree, const SizeOptions& options);

  Bytes of(const std::string& name) const;  ///< 0 if it has no tensors, or only tied ones that count under another name
  Bytes total() const { return of(""); }
  /// In the order of a walk through the tree: first all parameters, then all buffers.
  const std::vector<std::pair<std::string, Bytes>>& all() const { return all_; }

 private:
  void add(const std::string& name, const formats::TensorSpec& spec, const SizeOptions& options);
  void add(const std::string& name, Bytes bytes);

  std::vector<std::pair<std::string, Bytes>> all_;
  std::unordered_map<std::string, std::size_t> positions_;
};

}  // namespace hortator::bigmodel
