#include "bigmodel/module_sizes.hpp"

#include <algorithm>

namespace hortator::bigmodel {
namespace {

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
