#pragma once

#include <string>
#include <vector>

#include "bigmodel/module_tree.hpp"

namespace hortator::bigmodel {

/// A part of a model that is placed as one: a module with everything below it, or a tensor. Borrows the tree.
struct ModelPart {
  std::string name = {};           ///< in the whole model
  const TreeNode* node = nullptr;  ///< null for a tensor
};

/// The direct parts of the module `node`, whose name is `path`: parameters, children, buffers.
std::vector<ModelPart> parts_of(const TreeNode& node, const std::string& path);

/// For each tensor with several names, its names in sorted order.
using TiedGroups = std::vector<std::vector<std::string>>;
TiedGroups tied_groups(const ModuleTree& tree);

/// The classes in no_split_module_classes, whose modules are never split.
class NoSplitClasses {
 public:
  explicit NoSplitClasses(const std::vector<std::string>& names);
  /// Whether the class of `node` is listed; "Block" and "BlockImpl" both match a BlockImpl.
  bool keeps_whole(const TreeNode& node) const;
  /// Whether `part` can be split: a module with children whose class is not listed. Tensors cannot.
  bool can_split(const ModelPart& part) const;
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

/// The largest part that is never split.
struct LargestLayer {
  Bytes bytes = 0;
  std::vector<std::string> names = {};  ///< all parts of that size
};

LargestLayer largest_layer(const std::vector<ModelPart>& parts, const ModuleSizes& sizes, const NoSplitClasses& whole);

}  // namespace hortator::bigmodel
