#include "machine/cpu/device_binding.hpp"

#include <algorithm>
#include <iterator>

namespace hortator::machine {
namespace {

bool are_bound_by_launcher(std::span<const CpuSet> sets_of_node, const CpuSet& online) {
  if (sets_of_node.size() == 1) return sets_of_node.front() != online;
  return std::ranges::any_of(sets_of_node, [&](const CpuSet& set) { return set != sets_of_node.front(); });
}

}  // namespace

DeviceBinding bind_to_device(std::span<const CpuSet> sets_of_node, int local_rank, const CpuSet& online,
                             const CpuSet& beside_device) {
  using Kind = DeviceBinding::Kind;
  const auto& mine = sets_of_node[static_cast<std::size_t>(local_rank)];
  if (beside_device.empty()) return {.kind = Kind::unknown, .cpus = mine};
  CpuSet both;
  std::ranges::set_intersection(mine, beside_device, std::back_inserter(both));
  if (both == mine) return {.kind = Kind::beside, .cpus = mine};
  if (both.empty()) return {.kind = Kind::launchers_far, .cpus = mine};
  if (are_bound_by_launcher(sets_of_node, online)) return {.kind = Kind::launchers, .cpus = mine};
  // All are confined alike, mostly to CPUs elsewhere: each would lose some of those that it may have.
  const auto ranks = sets_of_node.size();
  if (ranks > 1 && both.size() * ranks < mine.size()) return {.kind = Kind::launchers, .cpus = mine};
  return {.kind = Kind::bind, .cpus = both};
}

std::string to_string(DeviceBinding::Kind kind) {
  switch (kind) {
    case DeviceBinding::Kind::unknown:
      return "";
    case DeviceBinding::Kind::beside:
      return "its CPUs are beside it";
    case DeviceBinding::Kind::bind:
      return "bound to the CPUs beside it";
    case DeviceBinding::Kind::launchers:
      return "CPUs as the launcher has bound them, some beside it";
    case DeviceBinding::Kind::launchers_far:
      break;
  }
  return "CPUs as the launcher has bound them, none beside it";
}

}  // namespace hortator::machine
