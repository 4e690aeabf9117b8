#include "launch/placement.hpp"

#include <hortator/error.hpp>
#include <set>
#include <string>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

[[noreturn]] void refuse(const Settings& settings, int ranks, int nodes, int per_node) {
  throw UsageError({.what = text::concat(ranks, " ranks (", settings.find("num_processes")->origin, ") are not ",
                                         text::count(nodes, "node"), " of ", per_node),
                    .hint = "leave out one of --ranks, --nodes and --ranks-per-node"});
}

}  // namespace

Placement placement(const Settings& settings) {
  const auto ranks = settings.number("num_processes");
  const auto nodes = settings.number("num_machines");
  const auto per_node = settings.number("ranks_per_node");
  if (ranks && nodes && per_node) {
    if (static_cast<long long>(*nodes) * *per_node != *ranks) refuse(settings, *ranks, *nodes, *per_node);
    return {*ranks, nodes, per_node};
  }
  if (nodes && per_node) return {*nodes * *per_node, nodes, per_node};
  if (!ranks) throw UsageError({.what = "the number of ranks is missing", .hint = "say -n N"});
  if (per_node) {
    if (*ranks < *per_node) return {*ranks, 1, ranks};
    if (*ranks % *per_node != 0) refuse(settings, *ranks, *ranks / *per_node, *per_node);
    return {*ranks, *ranks / *per_node, per_node};
  }
  if (!nodes) return {*ranks, {}, {}};
  if (*ranks < *nodes) {
    throw UsageError(
        {.what = text::concat(*ranks, " ranks are too few for ", *nodes, " nodes"), .hint = "each node needs one"});
  }
  // One node of all ranks is what a file of Accelerate's says of every laptop: no need to count them out.
  if (*ranks % *nodes != 0 || *nodes == 1) return {*ranks, nodes, {}};
  return {*ranks, nodes, *ranks / *nodes};
}

void settle_placement(std::vector<Layer>& layers) {
  std::set<std::string> said;
  for (auto& layer : layers) {
    const bool is_first = said.empty();
    for (const auto* key : {"num_processes", "ranks_per_node", "num_machines"}) {
      const auto given = layer.find(key);
      if (given == layer.end()) continue;
      if (is_first || said.size() < 2 || said.contains(key)) {
        said.insert(key);
      } else {
        layer.erase(given);
      }
    }
  }
}

}  // namespace hortator::launching
