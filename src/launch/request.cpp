#include "launch/request.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "launch/placement.hpp"
#include "launch/settings/resources.hpp"

namespace hortator::launching {
namespace {

// "all" is the default and sets nothing.
std::optional<std::string> visible_devices(const Settings& settings) {
  const auto ids = settings.word("gpu_ids");
  if (!ids || *ids == "all") return std::nullopt;
  if (ids->find_first_not_of("0123456789,") == std::string::npos) return ids;
  throw UsageError({.what = "--gpu-ids: expected all or comma-separated numbers, got " + text::quote(*ids)});
}

// The GPUs of that many ranks.
Gpus of_all(Gpus each, int ranks) {
  each.count *= ranks;
  if (each.types.find(',') != std::string::npos)
    throw UsageError({.what = "--gpus-per-rank: expected one type, got " + text::quote(each.types)});
  if (!each.types.empty()) each.types = text::concat(each.types.substr(0, each.types.find(':')), ':', each.count);
  return each;
}

// GPUs of a node, from whichever of the three settings is given.
std::optional<Gpus> gpus_of_node(const Settings& settings, const RankPlacement& counts) {
  if (const auto given = settings.word("gpus_per_node")) return parse_gpus(*given);
  if (const auto all = settings.word("gpus")) {
    auto gpus = *parse_gpus(*all);
    if (gpus.types.find(',') != std::string::npos) {
      throw UsageError({.what = "--gpus: expected one type, got " + text::quote(gpus.types),
                        .hint = "use --gpus-per-node, which takes several"});
    }
    const int nodes = counts.nodes.value_or(1);
    if (gpus.count % nodes != 0) {
      throw UsageError({.what = text::concat(gpus.count, " GPUs do not divide evenly over ", nodes, " nodes"),
                        .hint = "use --gpus-per-node"});
    }
    gpus.count /= nodes;
    if (!gpus.types.empty()) gpus.types = text::concat(gpus.types.substr(0, gpus.types.find(':')), ':', gpus.count);
    return gpus;
  }
  const auto each = settings.word("gpus_per_rank");
  if (!each) return {};
  return of_all(*parse_gpus(*each), counts.ranks_per_node.value_or(counts.ranks / counts.nodes.value_or(1)));
}

// Throws unless the ranks that get different batches are whole groups of those that hold all experts.
void check_experts(const Settings& settings, int ranks) {
  const int experts = settings.number("experts").value_or(1);
  for (const auto* axis : {"tensor", "context", "pipeline"}) ranks /= settings.number(axis).value_or(1);
  if (ranks % experts == 0) return;
  throw UsageError({.what = text::concat("--experts ", experts, ": it does not divide ", text::count(ranks, "rank")),
                    .why = "each group of that many ranks with different batches holds every expert once",
                    .hint = "change --ranks, or use a divisor of their number"});
}

// Throws unless the ranks along the axes of the mesh divide the ranks. (The program may set further axes.)
void check_axes(const Settings& settings, int ranks) {
  long long product = 1;
  std::vector<std::string> factors;
  for (const auto* axis : {"tensor", "context", "shard", "replicate", "pipeline"}) {
    const int size = settings.number(axis).value_or(1);
    product *= size;
    if (size != 1) factors.push_back(text::concat("--", axis, ' ', size));
    if (product > ranks) break;
  }
  if (ranks % product == 0) return check_experts(settings, ranks);
  throw UsageError(
      {.what = text::concat(text::join(factors, ", "), ": they do not divide ", text::count(ranks, "rank")),
       .why = "each rank has one position along each axis of the mesh",
       .hint = "change --ranks, or the ranks along an axis"});
}

}  // namespace

LaunchRequest request_of(const Settings& settings, int nodes_at_hand) {
  const auto counts = placement(settings, nodes_at_hand);
  check_axes(settings, counts.ranks);
  LaunchRequest request{.ranks = counts.ranks,
                        .one_for_each = counts.one_for_each,
                        .nodes = counts.nodes,
                        .ranks_per_node = counts.ranks_per_node,
                        .threads = settings.number("threads"),
                        .prefix_output = settings.is_on("prefix_output"),
                        .log_dir = settings.word("log_dir").value_or(""),
                        .hostfile = settings.word("hostfile").value_or(""),
                        .hosts = settings.word("host").value_or(""),
                        .cpu_bind = settings.word("cpu_bind").value_or(""),
                        .map_by = settings.word("map_by").value_or(""),
                        .launcher_options = settings.list("launcher_options"),
                        .bcast = settings.is_on("bcast"),
                        .survives_nodes = settings.number("max_restarts").value_or(0) > 0,
                        .variables = settings.list("environment")};
  const auto for_program = settings.for_program();
  request.variables.insert(request.variables.end(), for_program.begin(), for_program.end());
  if (const auto gpus = gpus_of_node(settings, counts)) {
    request.gpus_per_node = gpus->count;
    request.gpu_types = gpus->types;
  }
  if (settings.is_on("cpu") && request.gpus_per_node.value_or(0) > 0) {
    throw UsageError({.what = "--cpu and --gpus-per-node contradict each other", .hint = "leave out one of them"});
  }
  if (request.threads) request.variables.push_back("OMP_NUM_THREADS=" + std::to_string(*request.threads));
  if (const auto ids = visible_devices(settings)) request.variables.push_back("CUDA_VISIBLE_DEVICES=" + *ids);
  return request;
}

void place_on_hosts(LaunchRequest& request, std::optional<int> slots_of_host, int hosts) {
  const bool is_placed = request.nodes || request.ranks_per_node || !request.hosts.empty() ||
                         !request.hostfile.empty() || !request.map_by.empty();
  if (!is_placed && slots_of_host && request.ranks <= *slots_of_host * hosts)
    request.ranks_per_node = std::min(request.ranks, *slots_of_host);
}

}  // namespace hortator::launching
