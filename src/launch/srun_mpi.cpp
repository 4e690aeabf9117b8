#include "launch/srun_mpi.hpp"

#include <algorithm>
#include <vector>

namespace hortator::launching {
namespace {

// Depending on its release, Slurm prints the plugins one per line after "srun: ", or several after a colon.
std::vector<std::string> plugins_in(std::string_view list) {
  std::vector<std::string> plugins;
  std::string plugin;
  for (const char c : std::string(list) + "\n") {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_') {
      plugin += c;
    } else if (!plugin.empty()) {
      plugins.push_back(std::move(plugin));
      plugin.clear();
    }
  }
  return plugins;
}

}  // namespace

std::optional<std::string> choose_srun_mpi(std::string_view list, MpiFlavor mpi) {
  const auto plugins = plugins_in(list);
  const auto has = [&](const std::string& name) {
    return std::find(plugins.begin(), plugins.end(), name) != plugins.end();
  };
  if (mpi != MpiFlavor::open_mpi) {
    for (const auto* name : {"cray_shasta", "pmi2"}) {
      if (has(name)) return name;
    }
  }
  if (has("pmix")) return "pmix";
  std::string newest;
  for (const auto& plugin : plugins) {
    if (plugin.starts_with("pmix_v")) newest = std::max(newest, plugin);
  }
  return newest.empty() ? std::nullopt : std::optional(newest);
}

}  // namespace hortator::launching
