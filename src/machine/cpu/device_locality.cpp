#include "machine/cpu/device_locality.hpp"

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
  fs::path path;  ///< in the device tree
  bool is_fabric;
};

// Empty if the file cannot be read.
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

// Empty for a dangling link.
fs::path in_tree(const fs::path& link) {
  std::error_code error;
  auto path = fs::canonical(link, error);
  return error ? fs::path() : path;
}

// Skips virtual network devices: they have no device link.
void add_class(std::vector<NetworkDevice>& all, const fs::path& folder, bool is_fabric) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    auto path = in_tree(entry->path() / "device");
    if (!path.empty()) all.push_back({entry->path().filename().string(), std::move(path), is_fabric});
  }
}

// The number of steps from `a` up to the common bridge and down to `b`.
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
  const auto distance = [&](const NetworkDevice& candidate) {
    return std::tuple(numa_node_of(candidate.path) != node, hops_between(candidate.path, device), candidate.name);
  };
  const auto nearest = std::ranges::min_element(all, {}, distance);
  return nearest == all.end() ? std::string() : nearest->name;
}

}  // namespace

DeviceLocality find_locality(const std::string& pci, const fs::path& sys) {
  const auto device = in_tree(sys / "bus/pci/devices" / pci);
  if (device.empty()) return {};
  return {.numa_node = numa_node_of(device),
          .cpus = cpus_in(device / "local_cpulist"),
          .network = nearest_network(sys, device)};
}

CpuSet online_cpus(const fs::path& sys) { return cpus_in(sys / "devices/system/cpu/online"); }

std::string to_string(const DeviceLocality& locality) {
  std::vector<std::string> items;
  if (locality.numa_node) items.push_back(text::concat("NUMA node ", *locality.numa_node));
  if (!locality.network.empty()) items.push_back("nearest network device " + locality.network);
  return text::join(items);
}

}  // namespace hortator::machine
