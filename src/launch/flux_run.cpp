#include "launch/flux_run.hpp"

#include <hortator/error.hpp>
#include <tuple>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

using Arguments = std::vector<std::string>;

void refuse_unknown(const LaunchRequest& request) {
  for (const auto& [is_given, flag, hint] :
       {std::tuple(request.bcast, "--bcast", "start the program from a file system of all nodes"),
        {!request.hostfile.empty(), "--hostfile", "the nodes are those of the instance"},
        {!request.map_by.empty(), "--map-by", "use --launcher-option with an option of flux run"},
        {!request.log_dir.empty(), "--log-dir", "use --launcher-option --output=FILE, and --prefix-output"}}) {
    if (is_given)
      throw UsageError(
          {.what = text::concat(flag, " does not work with flux run, which starts the ranks here"), .hint = hint});
  }
}

// What its shell calls "per-task" is a set of cores for each rank.
std::string affinity_of(const std::string& bind) {
  if (bind == "none") return "off";
  if (bind == "core") return "per-task";
  throw UsageError({.what = text::concat("--cpu-bind: flux run has none and core, got ", text::quote(bind))});
}

}  // namespace

std::vector<std::string> flux_run(const LaunchRequest& request, const LaunchEnvironment& environment) {
  refuse_unknown(request);
  Arguments arguments = {"flux", "run"};
  if (environment.mpi == MpiFlavor::open_mpi) arguments.emplace_back("--setopt=pmi=pmix");
  const auto cores = request.threads ? request.threads : environment.cpus_per_task;
  const int gpus = request.gpus_per_node.value_or(0);
  if (request.nodes && request.ranks_per_node) {
    arguments.push_back(text::concat("--nodes=", *request.nodes));
    arguments.push_back(text::concat("--tasks-per-node=", *request.ranks_per_node));
    if (cores) arguments.push_back(text::concat("--cores=", request.ranks * *cores));
    // They are those of the node, because ranks use each other's devices only if they see them.
    if (gpus > 0) arguments.push_back(text::concat("--gpus-per-node=", gpus));
  } else {
    arguments.push_back(text::concat("--ntasks=", request.ranks));
    if (cores) arguments.push_back(text::concat("--cores-per-task=", *cores));
    if (gpus > 0) {
      throw UsageError({.what = "--gpus-per-node needs --nodes and --ranks-per-node where flux run starts the ranks"});
    }
  }
  if (!request.hosts.empty()) arguments.push_back("--requires=host:" + request.hosts);
  if (!request.cpu_bind.empty()) {
    arguments.push_back("--setopt=cpu-affinity=" + affinity_of(request.cpu_bind));
  } else if (cores) {
    arguments.emplace_back("--setopt=cpu-affinity=per-task");
  }
  if (request.prefix_output) arguments.emplace_back("--label-io");
  for (const auto& option : request.launcher_options) {
    auto arguments_of_option = text::split(option, ' ');
    std::erase(arguments_of_option, "");
    arguments.insert(arguments.end(), arguments_of_option.begin(), arguments_of_option.end());
  }
  if (request.variables.empty()) return arguments;
  arguments.emplace_back("env");
  arguments.insert(arguments.end(), request.variables.begin(), request.variables.end());
  return arguments;
}

}  // namespace hortator::launching
