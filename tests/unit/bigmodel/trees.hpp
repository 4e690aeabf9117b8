#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "bigmodel/module_tree.hpp"
#include "core/text/text.hpp"

namespace hortator::test {

inline bigmodel::TreeTensor tensor(const std::string& name, std::int64_t elements, at::ScalarType type = at::kFloat) {
  return {.name = name, .spec = {.type = type, .shape = {elements}}};
}

/// A layer of `elements` numbers of four bytes.
inline bigmodel::TreeNode layer(const std::string& name, std::int64_t elements) {
  return {.name = name, .type = "Layer", .parameters = {tensor("weight", elements)}};
}

/// Generates small trees of many shapes: modules with and without children, direct parameters and buffers, ties.
class RandomTrees {
 public:
  explicit RandomTrees(std::uint32_t seed) : random_(seed) {}

  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  bigmodel::ModuleTree tree() {
    bigmodel::ModuleTree tree{.root = node("", 3)};
    std::vector<std::string> names;
    collect(tree.root, "", names);
    // A tie's first name comes first in the tree, and a parameter has one first name.
    for (int tie = number(0, 2); tie > 0 && names.size() > 1; --tie) {
      const auto first = static_cast<std::size_t>(number(0, static_cast<int>(names.size()) - 2));
      const auto alias =
          static_cast<std::size_t>(number(static_cast<int>(first) + 1, static_cast<int>(names.size()) - 1));
      const auto is_first = [&](const std::string& name) {
        for (const auto& [other, kept] : tree.ties) {
          if (kept == name) return true;
        }
        return false;
      };
      if (!tree.ties.contains(names[first]) && !is_first(names[alias])) tree.ties.emplace(names[alias], names[first]);
    }
    return tree;
  }

 private:
  bigmodel::TreeNode node(const std::string& name, int depth) {
    bigmodel::TreeNode node{.name = name, .type = number(0, 3) == 0 ? "Block" : "Other"};
    for (int i = number(0, 2); i > 0; --i) node.parameters.push_back(tensor(text::concat("p", i), number(1, 40)));
    for (int i = number(0, 1); i > 0; --i) {
      node.buffers.push_back(tensor(text::concat("b", i), number(1, 20), number(0, 1) == 0 ? at::kFloat : at::kLong));
    }
    for (int i = depth > 0 ? number(0, 3) : 0; i > 0; --i) {
      node.children.push_back(this->node(text::concat("m", node.children.size()), depth - 1));
    }
    return node;
  }

  static void collect(const bigmodel::TreeNode& node, const std::string& path, std::vector<std::string>& names) {
    for (const auto& parameter : node.parameters) names.push_back(bigmodel::joined(path, parameter.name));
    for (const auto& child : node.children) collect(child, bigmodel::joined(path, child.name), names);
  }

  std::mt19937 random_;
};

}  // namespace hortator::test
