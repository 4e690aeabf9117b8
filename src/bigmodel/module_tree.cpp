#include "bigmodel/module_tree.hpp"

#include <algorithm>
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

// Integers are never converted, so they count with their own size.
Bytes counted_bytes(const std::string& name, at::ScalarType type, const SizeOptions& options) {
  const auto special = options.special_dtypes.find(name);
  if (special != options.special_dtypes.end()) return element_bytes(special->second);
  const auto own = element_bytes(type);
  if (!options.dtype || at::isIntegralType(type, /*includeBool=*/true)) return own;
  return std::min(own, element_bytes(*options.dtype));
}

enum class TensorRole { parameters, buffers };

template <typename Visit>
void each_tensor(const TreeNode& node, const std::string& path, TensorRole role, const Visit& visit) {
  const auto& tensors = role == TensorRole::parameters ? node.parameters : node.buffers;
  for (const auto& tensor : tensors) visit(joined(path, tensor.name), tensor.spec);
  for (const auto& child : node.children) each_tensor(child, joined(path, child.name), role, visit);
}

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

Bytes element_bytes(at::ScalarType type) {
  return type == at::kBool ? 0.125 : static_cast<Bytes>(c10::elementSize(type));
}

ModuleSizes::ModuleSizes(const ModuleTree& tree, const SizeOptions& options) {
  for (const auto role : {TensorRole::parameters, TensorRole::buffers}) {
    each_tensor(tree.root, "", role, [&](const std::string& name, const formats::TensorSpec& spec) {
      if (!tree.ties.contains(name)) add(name, spec, options);
    });
  }
}

Bytes ModuleSizes::of(const std::string& name) const {
  const auto position = positions_.find(name);
  return position == positions_.end() ? 0 : all_[position->second].second;
}

void ModuleSizes::add(const std::string& name, const formats::TensorSpec& spec, const SizeOptions& options) {
  const auto bytes = static_cast<Bytes>(spec.elements()) * counted_bytes(name, spec.type, options);
  add("", bytes);
  for (auto dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
    add(name.substr(0, dot), bytes);
  add(name, bytes);
}

void ModuleSizes::add(const std::string& name, Bytes bytes) {
  const auto [position, is_new] = positions_.emplace(name, all_.size());
  if (is_new) all_.emplace_back(name, 0);
  all_[position->second].second += bytes;
}

}  // namespace hortator::bigmodel
