// Fuzzes the readers of what a plan is made of: a machine file and a recorded plan are refused, or have numbers that
// a plan can compute with.
#include <cmath>
#include <cstdint>
#include <hortator/error.hpp>
#include <string>

#include "accelerator/options/planned_settings.hpp"
#include "planning/machine.hpp"
#include "target.hpp"

using namespace hortator;

FUZZ_TARGET(machine_file) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const auto machine = planning::parse_machine(text, "machine.json");
    if (machine.ranks_per_node < 1 || machine.memory < 1 || !std::isfinite(machine.flops_fp32)) __builtin_trap();
    if (planning::parse_machine(planning::to_json(machine), "machine.json") != machine) __builtin_trap();
  } catch (const UsageError&) {
  }
  try {
    accelerator::settings_in_plan(text);
  } catch (const Error&) {
  }
  accelerator::is_plan_of(text, {"train"}, 2, 2);
  return 0;
}
