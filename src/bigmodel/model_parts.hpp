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

}  // namespace hortator::bigmodel
