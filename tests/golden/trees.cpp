#include "trees.hpp"

#include "tensors.hpp"

namespace hortator::golden {
namespace {

std::vector<bigmodel::TreeTensor> tensors_of(const json& node, const char* kind) {
  std::vector<bigmodel::TreeTensor> tensors;
  for (const auto& tensor : node.value(kind, json::array())) {
    tensors.push_back(
        {.name = tensor.at(0),
         .spec = {.type = scalar_type(tensor.at(2)), .shape = tensor.at(1).get<std::vector<std::int64_t>>()}});
  }
  return tensors;
}

bigmodel::TreeNode node_of(const json& node, const std::string& name) {
  bigmodel::TreeNode result{
      .name = name, .type = node.at("cls"), .parameters = tensors_of(node, "p"), .buffers = tensors_of(node, "b")};
  for (const auto& child : node.value("c", json::array())) result.children.push_back(node_of(child.at(1), child.at(0)));
  return result;
}

}  // namespace

bigmodel::ModuleTree tree_of(const json& model) {
  bigmodel::ModuleTree tree{.root = node_of(model.at("tree"), "")};
  for (const auto& tie : model.value("tie", json::array())) tree.ties.emplace(tie.at(1), tie.at(0));
  return tree;
}

}  // namespace hortator::golden
