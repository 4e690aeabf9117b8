#include "exported/graph/module_stack.hpp"

#include <utility>

#include "core/text/text.hpp"

namespace hortator::exported {
namespace {

/// What the exporter writes where it does not know the module.
constexpr std::string_view unknown_module = "_empty_nn_module_stack_from_metadata_hook";

/// A module that is called twice has the paths "fc" and "fc@1".
std::string without_count(std::string_view path) { return std::string(path.substr(0, path.find('@'))); }

}  // namespace

std::vector<CallingModule> parse_module_stack(std::string_view text) {
  std::vector<CallingModule> modules;
  for (const auto& entry : text::split(text, ';')) {
    const auto last = entry.rfind(',');  // the key before the path may have commas as well
    if (last == std::string::npos || last == 0) continue;
    const auto before = entry.rfind(',', last - 1);
    if (before == std::string::npos || entry.starts_with(unknown_module)) continue;
    const auto type = entry.substr(last + 1);
    modules.push_back({.path = without_count(std::string_view(entry).substr(before + 1, last - before - 1)),
                       .type = type.substr(type.rfind('.') + 1)});
  }
  return modules;
}

std::vector<CallingModule> modules_around(const Field& node) {
  if (!node.has("metadata")) return {};
  const auto metadata = node.at("metadata");
  return metadata.has("nn_module_stack") ? parse_module_stack(metadata.at("nn_module_stack").text())
                                         : std::vector<CallingModule>();
}

std::map<std::string, std::string> module_classes(const Field& graph) {
  std::map<std::string, std::string> classes;
  for (const auto& node : graph.at("nodes").items()) {
    for (auto& module : modules_around(node)) classes.emplace(std::move(module.path), std::move(module.type));
  }
  return classes;
}

}  // namespace hortator::exported
