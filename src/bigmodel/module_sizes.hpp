#pragma once

#include <hortator/bigmodel/big_models.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bigmodel/module_tree.hpp"

namespace hortator::bigmodel {

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
