#pragma once

#include "bigmodel/module_tree.hpp"
#include "replay.hpp"

namespace hortator::golden {

/// Reads a tree of modules in golden files: {cls, p, b, c}, with ties in a separate list.
bigmodel::ModuleTree tree_of(const json& model);

/// Returns the model of a case.
inline bigmodel::ModuleTree model_of(const json& one, const json& file) {
  return tree_of(file.at("models").at(one.at("model").get<std::string>()));
}

/// Reads the names of classes; empty for null.
inline std::vector<std::string> class_names(const json& names) {
  return names.is_null() ? std::vector<std::string>{} : names.get<std::vector<std::string>>();
}

}  // namespace hortator::golden
