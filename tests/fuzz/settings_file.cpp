// Fuzzes the reader of a simulation's file of settings: any text is refused with its line, or has its values.
#include <cstdint>
#include <hortator/error.hpp>
#include <string>

#include "simulation/sections/setting_node.hpp"
#include "target.hpp"

using namespace hortator;

namespace {

void visit(const simulation::SettingNode& node) {
  using Shape = simulation::SettingNode::Shape;
  if (node.shape != Shape::list && !node.items.empty()) __builtin_trap();
  if (node.shape != Shape::map && !node.entries.empty()) __builtin_trap();
  for (const auto& item : node.items) visit(item);
  for (const auto& [key, value] : node.entries) visit(value);
}

}  // namespace

FUZZ_TARGET(settings_file) {
  try {
    visit(simulation::parse_settings(std::string(reinterpret_cast<const char*>(data), size), "run.yaml"));
  } catch (const UsageError&) {
  }
  return 0;
}
