#include "launch/placement.hpp"

#include <hortator/error.hpp>
#include <set>
#include <string>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

[[noreturn]] void refuse_placement(const Settings& settings, int ranks, int nodes, int per_node) {
  throw UsageError({.what = text::concat(ranks, " ranks (", settings.find("num_processes")->origin, ") are not ",
                                         text::count(nodes, "node"), " of ", per_node),
                    .hint = "leave out one of --ranks, --nodes and --ranks-per-node"});
}

}  // namespace

RankPlacement placement(const Settings& settings) {
  const auto ranks = settings.number("num_processes");
  const auto nodes = settings.number("num_machines");
  const auto per_node = settings.number("ranks_per_node");
  if (ranks && nodes && per_node) {
    if (static_cast<long long>(*nodes) * *per_node != *ranks) refuse_placement(settings, *ranks, *nodes, *per_node);
    return {*ranks, nodes, per_node};
  }
  if (nodes && per_node) return {*nodes * *per_node, nodes, per_node};
  if (!ranks) throw UsageError({.what = "The number of ranks is missing", .hint = "use -n N"});
  if (per_node) {
    if (*ranks < *per_node) return {*ranks, 1, ranks};
    if (*ranks % *per_node != 0) refuse_placement(settings, *ranks, *ranks / *per_node, *per_node);
    return {*ranks, *ranks / *per_node, per_node};
  }
  if (!nodes) return {*ranks, {}, {}};
  if (*ranks < *nodes) {
    throw UsageError({.what = text::concat(*ranks, " ranks are too few for ", *nodes, " nodes"),
                      .hint = "each node needs at least one rank"});
  }
  // Accelerate writes one node on every laptop, so that one node does not fix the ranks per node.
  if (*ranks % *nodes != 0 || *nodes == 1) return {*ranks, nodes, {}};
  return {*ranks, nodes, *ranks / *nodes};
}

void settle_placement(std::vector<Layer>& layers) {
  std::set<std::string> given_keys;
  for (auto& layer : layers) {
    const bool is_first = given_keys.empty();
    for (const auto* key : {"num_processes", "ranks_per_node", "num_machines"}) {
      const auto found = layer.find(key);
      if (found == layer.end()) continue;
      if (is_first || given_keys.size() < 2 || given_keys.contains(key)) {
        given_keys.insert(key);
      } else {
        layer.erase(found);
      }
    }
  }
}

}  // namespace hortator::launching
