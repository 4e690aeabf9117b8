#include "simulation/sections/setting_node.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/json.hpp"
#include "core/text/text.hpp"

namespace hortator::simulation {
namespace {

UsageError yaml_error(const std::string& file, const YAML::Mark& mark, const std::string& what) {
  return UsageError({.what = text::concat(file, ':', mark.line + 1, ": ", what),
                     .hint = "share/doc/simulations.md shows complete settings"});
}

// An alias may refer to what contains it.
SettingNode convert(const YAML::Node& yaml, const std::string& file, int level = 0) {
  if (level > core::max_record_levels)
    throw yaml_error(file, yaml.Mark(), text::concat("nested deeper than ", core::max_record_levels, " levels"));
  SettingNode node{.line = yaml.Mark().line + 1};
  if (yaml.IsScalar()) {
    node.shape = SettingNode::Shape::text;
    node.text = yaml.Scalar();
  } else if (yaml.IsSequence()) {
    node.shape = SettingNode::Shape::list;
    for (const auto& item : yaml) node.items.push_back(convert(item, file, level + 1));
  } else if (yaml.IsMap()) {
    node.shape = SettingNode::Shape::map;
    for (const auto& entry : yaml) {
      if (!entry.first.IsScalar()) throw yaml_error(file, entry.first.Mark(), "expected a name before the colon");
      const auto& key = entry.first.Scalar();
      const auto has_key = [&](const auto& other) { return other.first == key; };
      if (std::ranges::any_of(node.entries, has_key))
        throw yaml_error(file, entry.first.Mark(), key + " is given twice");
      auto value = convert(entry.second, file, level + 1);
      value.line = entry.first.Mark().line + 1;
      node.entries.emplace_back(key, std::move(value));
    }
  }
  return node;
}

}  // namespace

SettingNode parse_settings(const std::string& yaml, const std::string& file) {
  // yaml-cpp recurses for each level of brackets, and limits indentation itself.
  if (!core::is_shallow(yaml)) {
    throw UsageError({.what = text::concat(text::quote(file), " has brackets nested deeper than ",
                                           core::max_record_levels, " levels"),
                      .hint = "share/doc/simulations.md shows complete settings"});
  }
  try {
    auto root = convert(YAML::Load(yaml), file);
    if (root.shape == SettingNode::Shape::empty) root.shape = SettingNode::Shape::map;
    return root;
  } catch (const YAML::Exception& error) {
    throw yaml_error(file, error.mark, error.msg);
  }
}

}  // namespace hortator::simulation
