#include "machine/cpu/device_place.hpp"

#include <algorithm>
#include <fstream>
#include <hortator/error.hpp>
#include <tuple>
#include <vector>

#include "core/text/text.hpp"

namespace hortator::machine {
namespace {

namespace fs = std::filesystem;

struct NetworkDevice {
  std::string name;
  fs::path path;  ///< in the tree of devices
  bool is_fabric;
};

// Empty where there is none.
std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<int> numa_node_of(const fs::path& device) {
  long long node = -1;
  if (!text::parse_integer(first_line(device / "numa_node"), node) || node < 0) return std::nullopt;
  return static_cast<int>(node);
}

CpuSet cpus_in(const fs::path& file) {
  try {
    return from_ranges(first_line(file));
  } catch (const Error&) {
    return {};
  }
}

// Empty where the link leads nowhere.
fs::path in_tree(const fs::path& link) {
  std::error_code error;
  auto path = fs::canonical(link, error);
  return error ? fs::path() : path;
}

// Virtual ones have no device.
void add_class(std::vector<NetworkDevice>& all, const fs::path& folder, bool is_fabric) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    auto path = in_tree(entry->path() / "device");
    if (!path.empty()) all.push_back({entry->path().filename().string(), std::move(path), is_fabric});
  }
}

// From one up to the bridge that they have in common, and down to the other.
int hops_between(const fs::path& a, const fs::path& b) {
  const auto [end_a, end_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<int>(std::distance(end_a, a.end()) + std::distance(end_b, b.end()));
}

std::string nearest_network(const fs::path& sys, const fs::path& device) {
  std::vector<NetworkDevice> all;
  add_class(all, sys / "class/infiniband", true);
  add_class(all, sys / "class/cxi", true);
  if (all.empty()) add_class(all, sys / "class/net", false);
  const auto node = numa_node_of(device);
  const auto distance = [&](const NetworkDevice& one) {
    return std::tuple(numa_node_of(one.path) != node, hops_between(one.path, device), one.name);
  };
  const auto nearest = std::ranges::min_element(all, {}, distance);
  return nearest == all.end() ? std::string() : nearest->name;
}

}  // namespace

DevicePlace find_place(const std::string& pci, const fs::path& sys) {
  const auto device = in_tree(sys / "bus/pci/devices" / pci);
  if (device.empty()) return {};
  return {.numa_node = numa_node_of(device),
          .cpus = cpus_in(device / "local_cpulist"),
          .network = nearest_network(sys, device)};
}

CpuSet online_cpus(const fs::path& sys) { return cpus_in(sys / "devices/system/cpu/online"); }

std::string to_string(const DevicePlace& place) {
  std::vector<std::string> parts;
  if (place.numa_node) parts.push_back(text::concat("NUMA node ", *place.numa_node));
  if (!place.network.empty()) parts.push_back("nearest network device " + place.network);
  return text::join(parts);
}

}  // namespace hortator::machine
