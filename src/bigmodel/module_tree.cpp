#include "bigmodel/module_tree.hpp"

#include <unordered_map>

namespace hortator::bigmodel {
namespace {

// The name that users write: "Linear" for "torch::nn::LinearImpl".
std::string class_name(std::string name) {
  constexpr std::string_view suffix = "Impl";
  const auto arguments = name.find('<');
  const auto colon = name.rfind("::", arguments);
  if (colon != std::string::npos) name.erase(0, colon + 2);
  if (name.ends_with(suffix) && name.size() > suffix.size()) name.erase(name.size() - suffix.size());
  return name;
}

/// Converts a module to a tree, in the order of registration.
class TreeBuilder {
 public:
  TreeNode node_of(const torch::nn::Module& module, const std::string& name, const std::string& path) {
    TreeNode node{.name = name, .type = class_name(module.name())};
    for (const auto& item : module.named_parameters(/*recurse=*/false))
      add(item.key(), item.value(), path, node.parameters);
    for (const auto& item : module.named_buffers(/*recurse=*/false)) add(item.key(), item.value(), path, node.buffers);
    for (const auto& child : module.named_children())
      node.children.push_back(node_of(*child.value(), child.key(), joined(path, child.key())));
    return node;
  }

  std::map<std::string, std::string> take_ties() { return std::move(ties_); }

 private:
  void add(const std::string& name, const at::Tensor& tensor, const std::string& path, std::vector<TreeTensor>& all) {
    if (!tensor.defined()) return;
    const auto full = joined(path, name);
    const auto [first, is_new] = first_names_.emplace(tensor.unsafeGetTensorImpl(), full);
    if (!is_new) ties_.emplace(full, first->second);
    all.push_back({.name = name, .spec = formats::spec_of(tensor)});
  }

  std::unordered_map<const c10::TensorImpl*, std::string> first_names_;
  std::map<std::string, std::string> ties_;
};

}  // namespace

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

bool is_within(const std::string& name, const std::string& whole) {
  return whole.empty() || (name.starts_with(whole) && (name.size() == whole.size() || name[whole.size()] == '.'));
}

ModuleTree tree_of(const torch::nn::Module& module) {
  TreeBuilder builder;
  ModuleTree tree{.root = builder.node_of(module, "", "")};
  tree.ties = builder.take_ties();
  return tree;
}

}  // namespace hortator::bigmodel
