#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// The energy of a node, from the counters that the kernel offers in files.
namespace hortator::machine {

/// Sums up the energy that a node has used since the meter was made: that of Cray's pm_counters (the whole node with
/// its accelerators), otherwise that of powercap's zones (processor packages and memory). Other jobs on the node count
/// as well. Counters that begin again from 0 are followed if joules() is called at least once in each of their rounds.
class EnergyMeter {
 public:
  /// `root` is the folder in which the path of the counters begins: "/", except in tests.
  explicit EnergyMeter(const std::filesystem::path& root);

  /// Since the meter was made; nothing if the node offers no counter that this user may read.
  std::optional<double> joules();
  /// "pm_counters" or "powercap"; empty if there is none.
  const std::string& source() const { return source_; }
  /// Whether the energy of the accelerators is in it.
  bool includes_devices() const { return source_ == "pm_counters"; }

 private:
  struct Counter {
    std::filesystem::path file;
    double joules_per_unit = 1;
    double range = 0;  ///< in units, after which the counter begins again from 0; 0: it does not
    double last = 0;   ///< in units
  };

  void find_pm_counters(const std::filesystem::path& root);
  void find_powercap(const std::filesystem::path& root);
  void add(Counter counter);

  std::vector<Counter> counters_;
  std::string source_;
  double joules_ = 0;
};

/// The root for the counters of this process: HORTATOR_ENERGY_ROOT, else "/". Empty for "off".
std::filesystem::path energy_root();

}  // namespace hortator::machine
