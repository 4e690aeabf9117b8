#pragma once

#include <string>
#include <vector>

#include "bigmodel/module_sizes.hpp"
#include "bigmodel/module_tree.hpp"

namespace hortator::bigmodel {

/// What has one place: a module with all below it, or a tensor. Borrows the tree.
struct Part {
  std::string name = {};           ///< in the whole model
  const TreeNode* node = nullptr;  ///< null: a tensor
};

/// What directly makes up the module `node`, which is called `path`: parameters, children, buffers.
std::vector<Part> parts_of(const TreeNode& node, const std::string& path);

/// Names of classes whose modules stay whole, as users write them.
class WholeClasses {
 public:
  explicit WholeClasses(const std::vector<std::string>& names);
  bool keeps_whole(const TreeNode& node) const;
  /// Can it be split? Tensors cannot, nor modules without children.
  bool splits(const Part& part) const;
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

/// The largest of what is never split.
struct LargestLayer {
  Bytes bytes = 0;
  std::vector<std::string> names = {};  ///< all that are as large
};

LargestLayer largest_layer(const std::vector<Part>& parts, const ModuleSizes& sizes, const WholeClasses& whole);

/// The names of each tensor that has several, sorted.
using TiedGroups = std::vector<std::vector<std::string>>;
TiedGroups tied_groups(const ModuleTree& tree);

}  // namespace hortator::bigmodel
