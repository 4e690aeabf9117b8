#pragma once

#include "bigmodel/module_tree.hpp"
#include "replay.hpp"

namespace hortator::golden {

/// A tree as golden files of big models write it: {cls, p, b, c}, and tie beside it.
bigmodel::ModuleTree tree_of(const json& model);

/// The model that a case names.
inline bigmodel::ModuleTree model_of(const json& one, const json& file) {
  return tree_of(file.at("models").at(one.at("model").get<std::string>()));
}

/// null, or names of classes.
inline std::vector<std::string> class_names(const json& names) {
  return names.is_null() ? std::vector<std::string>{} : names.get<std::vector<std::string>>();
}

}  // namespace hortator::golden
