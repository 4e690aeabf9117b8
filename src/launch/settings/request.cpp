#include "launch/settings/request.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "launch/placement.hpp"

namespace hortator::launching {
namespace {

// "all" is the default and sets nothing.
std::optional<std::string> visible_devices(const Settings& settings) {
  const auto ids = settings.word("gpu_ids");
  if (!ids || *ids == "all") return std::nullopt;
  if (ids->find_first_not_of("0123456789,") == std::string::npos) return ids;
  throw UsageError({.what = "--gpu-ids: expected all or comma-separated numbers, got " + text::quote(*ids)});
}

}  // namespace

LaunchRequest request_of(const Settings& settings) {
  const auto counts = placement(settings);
  LaunchRequest request{.ranks = counts.ranks,
                        .nodes = counts.nodes,
                        .ranks_per_node = counts.ranks_per_node,
                        .gpus_per_node = settings.number("gpus_per_node"),
                        .threads = settings.number("num_cpu_threads_per_process"),
                        .prefix_output = settings.is_on("prefix_output"),
                        .log_dir = settings.word("log_dir").value_or(""),
                        .hostfile = settings.word("hostfile").value_or(""),
                        .bcast = settings.is_on("bcast"),
                        .survives_nodes = settings.number("max_restarts").value_or(0) > 0,
                        .variables = settings.for_program()};
  if (settings.is_on("use_cpu") && request.gpus_per_node.value_or(0) > 0) {
    throw UsageError({.what = "--cpu and --gpus-per-node contradict each other", .hint = "leave out one of them"});
  }
  if (request.threads) request.variables.push_back("OMP_NUM_THREADS=" + std::to_string(*request.threads));
  if (const auto ids = visible_devices(settings)) request.variables.push_back("CUDA_VISIBLE_DEVICES=" + *ids);
  return request;
}

}  // namespace hortator::launching
