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
                             const CpuSet& near_device) {
  using Outcome = DeviceBinding::Outcome;
  const auto& mine = sets_of_node[static_cast<std::size_t>(local_rank)];
  if (near_device.empty()) return {.outcome = Outcome::unknown, .cpus = mine};
  CpuSet both;
  std::ranges::set_intersection(mine, near_device, std::back_inserter(both));
  if (both == mine) return {.outcome = Outcome::near, .cpus = mine};
  if (both.empty()) return {.outcome = Outcome::launcher_far, .cpus = mine};
  if (are_bound_by_launcher(sets_of_node, online)) return {.outcome = Outcome::launcher, .cpus = mine};
  // All ranks have the same set, mostly of CPUs elsewhere: binding would leave each rank less than its share.
  const auto ranks = sets_of_node.size();
  if (ranks > 1 && both.size() * ranks < mine.size()) return {.outcome = Outcome::launcher, .cpus = mine};
  return {.outcome = Outcome::bind, .cpus = both};
}

std::string to_string(DeviceBinding::Outcome outcome) {
  switch (outcome) {
    case DeviceBinding::Outcome::unknown:
      return "";
    case DeviceBinding::Outcome::near:
      return "its CPUs are beside it";
    case DeviceBinding::Outcome::bind:
      return "bound to the CPUs beside it";
    case DeviceBinding::Outcome::launcher:
      return "CPUs as the launcher has bound them, some beside it";
    case DeviceBinding::Outcome::launcher_far:
      break;
  }
  return "CPUs as the launcher has bound them, none beside it";
}

}  // namespace hortator::machine
