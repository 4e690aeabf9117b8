#include "launch/placement.hpp"

#include <hortator/error.hpp>
#include <set>
#include <string>

#include "core/text/text.hpp"
#include "launch/settings/resources.hpp"

namespace hortator::launching {
namespace {

[[noreturn]] void refuse_placement(const Settings& settings, int ranks, int nodes, int per_node) {
  throw UsageError({.what = text::concat(ranks, " ranks (", settings.find("ranks")->origin, ") are not ",
                                         text::count(nodes, "node"), " of ", per_node),
                    .hint = "leave out one of --ranks, --nodes and --ranks-per-node"});
}

// If several settings mean the same, the highest layer that has one of them decides.
void settle_alternatives(std::vector<Layer>& layers, std::initializer_list<const char*> keys) {
  bool is_given = false;
  for (auto& layer : layers) {
    bool is_here = false;
    for (const auto* key : keys) {
      const auto found = layer.find(key);
      if (found == layer.end()) continue;
      is_here = true;
      if (is_given) layer.erase(found);
    }
    is_given = is_given || is_here;
  }
}

// The nodes of a launch or job that gives only the ranks of each. How many a file of hosts lists is not known here.
std::optional<int> assumed_nodes(const Settings& settings, int at_hand) {
  const auto hosts = settings.word("host").value_or("");
  if (settings.find("hostfile") != nullptr || hosts.find('[') != std::string::npos) return {};
  return hosts.empty() ? at_hand : static_cast<int>(text::split(hosts, ',').size());
}

// One rank for each GPU, unless the CPUs are used.
std::optional<int> ranks_for_gpus(const Settings& settings, std::optional<int> nodes) {
  if (settings.is_on("cpu")) return {};
  for (const auto* key : {"gpus_per_node", "gpus"}) {
    const auto given = settings.word(key);
    const int count = given ? parse_gpus(*given).value_or(Gpus{}).count : 0;
    const int share = std::string_view(key) == "gpus" ? nodes.value_or(1) : 1;
    if (count > 0 && count % share == 0) return count / share;
  }
  const auto ids = settings.word("gpu_ids").value_or("all");
  if (ids == "all") return {};
  return static_cast<int>(text::split(ids, ',').size());
}

}  // namespace

RankPlacement placement(const Settings& settings, int nodes_at_hand) {
  const auto ranks = settings.number("ranks");
  auto nodes = settings.number("nodes");
  auto per_node = settings.number("ranks_per_node");
  const bool is_assumed = !ranks && !per_node;
  if (is_assumed) per_node = ranks_for_gpus(settings, nodes);
  std::string_view one_for_each = is_assumed && per_node ? "GPU" : "";
  if (is_assumed && !per_node && nodes) {
    per_node = 1;
    one_for_each = "node";
  }
  if (is_assumed && per_node && !nodes) return {*per_node, {}, {}, one_for_each};
  if (!ranks && per_node && !nodes) nodes = assumed_nodes(settings, nodes_at_hand);
  if (ranks && nodes && per_node) {
    if (static_cast<long long>(*nodes) * *per_node != *ranks) refuse_placement(settings, *ranks, *nodes, *per_node);
    return {*ranks, nodes, per_node};
  }
  if (nodes && per_node) return {*nodes * *per_node, nodes, per_node, one_for_each};
  if (!ranks) throw UsageError({.what = "The number of ranks is missing", .hint = "use -n N, or --ranks-per-node N"});
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
  settle_alternatives(layers, {"gpus_per_node", "gpus_per_rank", "gpus"});
  settle_alternatives(layers, {"mem", "mem_per_cpu"});
  std::set<std::string> given_keys;
  for (auto& layer : layers) {
    const bool is_first = given_keys.empty();
    for (const auto* key : {"ranks", "ranks_per_node", "nodes"}) {
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
