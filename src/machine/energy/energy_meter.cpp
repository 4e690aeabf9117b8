#include "machine/energy/energy_meter.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::machine {
namespace {

namespace fs = std::filesystem;

// The number at the beginning of the file: "84593 J 1795903 us" in Cray's.
std::optional<double> number_in(const fs::path& file) {
  const auto content = core::read_at_most(file, 4096);
  if (!content) return {};
  std::uint64_t number = 0;
  const auto read = std::from_chars(content->data(), content->data() + content->size(), number);
  return read.ec == std::errc() ? std::optional(static_cast<double>(number)) : std::nullopt;
}

std::vector<fs::path> folders_in(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

// Packages, with the memory beside them: a package's other parts are in it, and "psys" has all of it again.
bool counts(const fs::path& zone) {
  const auto name = text::first_line(core::read_at_most(zone / "name", 4096).value_or(""));
  return name.starts_with("package") || name == "dram";
}

}  // namespace

EnergyMeter::EnergyMeter(const fs::path& root) {
  if (root.empty()) return;
  find_pm_counters(root);
  if (counters_.empty()) find_powercap(root);
}

void EnergyMeter::find_pm_counters(const fs::path& root) {
  add({.file = root / "sys/cray/pm_counters/energy"});
  if (!counters_.empty()) source_ = "pm_counters";
}

void EnergyMeter::find_powercap(const fs::path& root) {
  // The kernel lists nested zones here, too: intel-rapl:0:0 is in intel-rapl:0.
  for (const auto& zone : folders_in(root / "sys/class/powercap", "intel-rapl:")) {
    if (!counts(zone)) continue;
    constexpr double micro = 1e-6;
    add({.file = zone / "energy_uj",
         .joules_per_unit = micro,
         .range = number_in(zone / "max_energy_range_uj").value_or(0)});
  }
  if (!counters_.empty()) source_ = "powercap";
}

void EnergyMeter::add(Counter counter) {
  const auto now = number_in(counter.file);
  if (!now) return;
  counter.last = *now;
  counters_.push_back(std::move(counter));
}

std::optional<double> EnergyMeter::joules() {
  if (counters_.empty()) return {};
  for (auto& counter : counters_) {
    const auto now = number_in(counter.file);
    if (!now) continue;
    // Without a range, a counter that has fallen was reset.
    const double passed = *now >= counter.last ? *now - counter.last
                          : counter.range > 0  ? *now + counter.range - counter.last
                                               : *now;
    joules_ += passed * counter.joules_per_unit;
    counter.last = *now;
  }
  return joules_;
}

fs::path energy_root() {
  const auto root = core::variable("HORTATOR_ENERGY_ROOT");
  if (root && *root == "off") return {};
  return root ? fs::path(*root) : fs::path("/");
}

}  // namespace hortator::machine
