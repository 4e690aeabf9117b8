#include "launch/command.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <string_view>
#include <utility>

#include "core/text/text.hpp"
#include "launch/binding.hpp"
#include "launch/flux_run.hpp"
#include "launch/settings/synonyms.hpp"

namespace hortator::launching {
namespace {

using Arguments = std::vector<std::string>;

void append(Arguments& arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
}

std::vector<std::string> split_option(const std::string& text) {
  auto parts = text::split(text, ' ');
  std::erase(parts, "");
  return parts;
}

// The user's own options. An option of the other launcher would be an error of this one.
Arguments own_options(const LaunchRequest& request, bool is_srun) {
  Arguments arguments;
  for (const auto& option : request.launcher_options) {
    if (has_option(is_srun ? Dialect::mpi : Dialect::slurm, option)) {
      throw UsageError(
          {.what = text::concat(split_option(option).front(), " is an option of ", is_srun ? "mpirun" : "srun",
                                ", and ", is_srun ? "srun" : "mpirun", " starts the ranks here"),
           .hint = "drop it, or use the other launcher's option"});
    }
    append(arguments, split_option(option));
  }
  return arguments;
}

[[noreturn]] void refuse_map_by(const std::string& launcher, const std::string& hint) {
  throw UsageError(
      {.what = "--map-by does not work with " + launcher, .why = "it is an option of mpirun", .hint = hint});
}

// srun parses --export as a list with its own commas and quotes.
bool fits_into_export(const std::string& variable) {
  return variable.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_=+-./:@%") ==
         std::string::npos;
}

// Launchers differ in how they pass variables on; env works with all of them.
Arguments by_env(const Arguments& variables) {
  if (variables.empty()) return {};
  Arguments arguments = {"env"};
  append(arguments, variables);
  return arguments;
}

// ALL is given although it is the default: a job submitted with --export=NONE passes that on to its steps.
Arguments srun_variables(const LaunchRequest& request) {
  if (std::all_of(request.variables.begin(), request.variables.end(), fits_into_export)) {
    Arguments names = {"ALL"};
    append(names, request.variables);
    return {"--export=" + text::join(names, ",")};
  }
  if (request.bcast) {
    throw UsageError({.what = "--bcast: cannot pass on " + request.variables.back(),
                      .why = "srun would copy env instead of the program",
                      .hint = "export it before `hortator launch`, or drop --bcast"});
  }
  Arguments arguments = {"--export=ALL"};
  append(arguments, by_env(request.variables));
  return arguments;
}

// Without --kill-on-bad-exit, ranks would wait for a killed rank until the job's time limit.
Arguments srun(const LaunchRequest& request, const LaunchEnvironment& environment) {
  Arguments arguments = {"srun", "--mpi=" + *environment.srun_mpi, "--kill-on-bad-exit=1"};
  // Whatever the allocation has: the ranks that are left would wait for lost ones.
  if (request.survives_nodes) arguments.emplace_back("--no-kill=off");
  if (request.nodes) append(arguments, {"-N", std::to_string(*request.nodes)});
  append(arguments, {"-n", std::to_string(request.ranks)});
  if (request.ranks_per_node) arguments.push_back("--ntasks-per-node=" + std::to_string(*request.ranks_per_node));
  const auto cpus = request.threads ? request.threads : environment.cpus_per_task;
  if (cpus) arguments.push_back("--cpus-per-task=" + std::to_string(*cpus));
  // Ranks of a node can use each other's devices only if they see them, so GPUs are requested per node, not per task.
  // No --gpu-bind: with "none", Slurm 22.05 does not report which of the node's devices belong to the job.
  if (request.gpus_per_node.value_or(0) > 0) arguments.push_back("--gpus-per-node=" + gpus_text(request));
  if (!request.hostfile.empty()) {
    throw UsageError({.what = "--hostfile does not work with srun, which starts the ranks here",
                      .hint = "use --host n1,n2; in a job, the nodes are those of the allocation"});
  }
  if (!request.hosts.empty()) arguments.push_back("--nodelist=" + request.hosts);
  if (!request.excluded_hosts.empty()) arguments.push_back("--exclude=" + request.excluded_hosts);
  if (!request.cpu_bind.empty()) arguments.push_back("--cpu-bind=" + srun_binding(request.cpu_bind));
  if (!request.map_by.empty()) refuse_map_by("srun", "use --launcher-option --distribution=block:cyclic");
  if (request.prefix_output) arguments.emplace_back("--label");
  if (!request.log_dir.empty()) arguments.push_back("--output=" + request.log_dir + "/rank_%t.log");
  if (request.bcast) append(arguments, {"--bcast=/tmp/" + std::string(text::file_name(request.program))});
  append(arguments, own_options(request, /*is_srun=*/true));
  append(arguments, srun_variables(request));
  return arguments;
}

void check_nodes(const LaunchRequest& request, const LaunchEnvironment& environment) {
  if (request.nodes.value_or(1) == 1 || has_nodes(request, environment)) return;
  throw UsageError(
      {.what = text::concat("--nodes: ", *request.nodes, " nodes were requested, but there is only this machine"),
       .hint = "start within a job (`hortator job` makes one), or list the hosts with --hostfile"});
}

// The number of this machine's cores for each rank; nothing if the ranks share all cores or a scheduler assigns them.
std::optional<int> own_cores(const LaunchRequest& request, const LaunchEnvironment& environment) {
  if (has_nodes(request, environment) || request.ranks == 1 || request.ranks > environment.cores ||
      environment.is_confined)
    return {};
  const int fair = environment.cores / request.ranks;
  return std::clamp(request.threads.value_or(fair), 1, fair);
}

// A rank's share of the CPUs that PBS gave; nothing outside of PBS, and if the user has chosen threads.
std::optional<int> pbs_share(const LaunchRequest& request, const LaunchEnvironment& environment) {
  if (request.threads || !environment.pbs_cpus) return {};
  return std::max(1, *environment.pbs_cpus / request.ranks);
}

// PBS counts hardware threads and PE counts cores, so that ranks of several CPUs are not bound.
Arguments open_mpi_binding(const LaunchRequest& request, const LaunchEnvironment& environment) {
  const bool is_free = environment.shares_node || pbs_share(request, environment).value_or(1) > 1;
  return is_free ? Arguments{"--bind-to", "none"} : Arguments{};
}

// What the user has chosen. A number of cores for each rank (PE) would contradict another binding.
Arguments chosen_placement(const LaunchRequest& request, const LaunchEnvironment& environment) {
  Arguments arguments;
  const bool has_node_list = has_nodes(request, environment);
  if (!has_node_list) check_nodes(request, environment);
  if (!request.map_by.empty()) {
    append(arguments, {"--map-by", request.map_by});
  } else if (has_node_list && request.ranks_per_node) {
    append(arguments, {"--map-by", text::concat("ppr:", *request.ranks_per_node, ":node")});
  } else if (!has_node_list && request.ranks > environment.cores) {
    append(arguments, {"--map-by", ":OVERSUBSCRIBE"});
  }
  if (!request.cpu_bind.empty()) append(arguments, {"--bind-to", mpirun_binding(request.cpu_bind)});
  return arguments;
}

// "n1:2,n2:2": without a number, Open MPI would start one rank on each host.
std::string hosts_with_slots(const LaunchRequest& request) {
  if (request.hosts.find(':') != std::string::npos) return request.hosts;
  auto hosts = text::split(request.hosts, ',');
  const int count = static_cast<int>(hosts.size());
  const int slots = request.ranks_per_node.value_or((request.ranks + count - 1) / count);
  for (auto& host : hosts) host += text::concat(':', slots);
  return text::join(hosts, ",");
}

// By default, Open MPI gives each of two ranks a single core, and lets more than two share a socket. Open MPI 4 and 5
// both accept ":OVERSUBSCRIBE"; --oversubscribe is deprecated.
Arguments open_mpi_placement(const LaunchRequest& request, const LaunchEnvironment& environment) {
  if (!request.map_by.empty() || !request.cpu_bind.empty()) return chosen_placement(request, environment);
  const bool has_node_list = has_nodes(request, environment);
  if (!has_node_list) check_nodes(request, environment);
  if (request.ranks_per_node && has_node_list) {
    const auto cores = request.threads && !environment.shares_node ? text::concat(":PE=", *request.threads) : "";
    Arguments arguments = {"--map-by", text::concat("ppr:", *request.ranks_per_node, ":node", cores)};
    append(arguments, open_mpi_binding(request, environment));
    return arguments;
  }
  if (has_node_list) return open_mpi_binding(request, environment);
  if (request.ranks > environment.cores) return {"--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"};
  const auto cores = own_cores(request, environment);
  if (!cores) return {"--bind-to", "none"};
  return {"--map-by", text::concat("slot:PE=", *cores), "--bind-to", "core"};
}

Arguments open_mpi_output(const LaunchRequest& request, int major) {
  Arguments arguments;
  if (major >= 5) {
    Arguments forms;
    if (request.prefix_output) forms.emplace_back("tag");
    if (!request.log_dir.empty()) forms.push_back("dir=" + request.log_dir);
    if (!forms.empty()) append(arguments, {"--output", text::join(forms, ",")});
    return arguments;
  }
  if (request.prefix_output) arguments.emplace_back("--tag-output");
  if (!request.log_dir.empty()) append(arguments, {"--output-filename", request.log_dir});
  return arguments;
}

// Without the scheduler's agent, ranks on other nodes would run outside of the job: without its limits, and not killed
// with it.
Arguments open_mpi_in_batch_job(const LaunchEnvironment& environment) {
  if (environment.node_file.empty()) return {};
  if (environment.agent.empty()) {
    throw Error({.what = text::concat("This Open MPI was built without support for ", environment.batch_title,
                                      ", and there is no ", environment.batch_title == "PBS" ? "pbs_tmrsh" : "blaunch"),
                 .why = "ranks on other nodes would not belong to the job",
                 .hint = text::concat("load an Open MPI that was built with it, or add the bin folder of ",
                                      environment.batch_title, " to PATH")});
  }
  return {"--hostfile", environment.node_file, "--mca", "plm_rsh_agent", environment.agent};
}

// Open MPI passes only named variables to other hosts; other launchers pass the whole environment.
Arguments open_mpi_variables(const LaunchRequest& request, const LaunchEnvironment& environment) {
  if (!has_nodes(request, environment)) return {};
  Arguments arguments;
  for (const auto& name : environment.own_variables) append(arguments, {"-x", name});
  return arguments;
}

Arguments open_mpi(const LaunchRequest& request, const LaunchEnvironment& environment) {
  Arguments arguments = {environment.mpirun, "-n", std::to_string(request.ranks)};
  if (environment.is_root) arguments.emplace_back("--allow-run-as-root");
  if (!request.hostfile.empty()) {
    append(arguments, {"--hostfile", request.hostfile});
  } else {
    append(arguments, open_mpi_in_batch_job(environment));
  }
  if (!request.hosts.empty()) append(arguments, {"--host", hosts_with_slots(request)});
  append(arguments, open_mpi_placement(request, environment));
  append(arguments, open_mpi_output(request, environment.mpi_major));
  append(arguments, open_mpi_variables(request, environment));
  return arguments;
}

// By default Hydra does not bind: each rank would start as many threads as the machine has cores.
Arguments mpich(const LaunchRequest& request, const LaunchEnvironment& environment) {
  check_nodes(request, environment);
  Arguments arguments = {environment.mpirun, "-n", std::to_string(request.ranks)};
  if (!request.hostfile.empty()) append(arguments, {"-f", request.hostfile});
  if (!request.hosts.empty()) append(arguments, {"-hosts", request.hosts});
  if (request.ranks_per_node) append(arguments, {"-ppn", std::to_string(*request.ranks_per_node)});
  if (!request.cpu_bind.empty() || !request.map_by.empty()) {
    if (!request.cpu_bind.empty()) append(arguments, {"-bind-to", mpirun_binding(request.cpu_bind)});
    if (!request.map_by.empty()) append(arguments, {"-map-by", request.map_by});
  } else if (const auto cores = own_cores(request, environment)) {
    const auto each = text::concat("core:", *cores);
    append(arguments, {"-bind-to", each, "-map-by", each});
  }
  if (request.prefix_output) arguments.emplace_back("-prepend-rank");
  if (!request.log_dir.empty()) append(arguments, {"-outfile-pattern", request.log_dir + "/rank_%r.log"});
  return arguments;
}

Arguments pals(const LaunchRequest& request, const LaunchEnvironment& environment) {
  Arguments arguments = {environment.mpirun, "-n", std::to_string(request.ranks)};
  if (request.ranks_per_node) append(arguments, {"-ppn", std::to_string(*request.ranks_per_node)});
  const auto cpus = request.threads ? request.threads : pbs_share(request, environment);
  if (!request.map_by.empty()) refuse_map_by("PALS", "use --launcher-option with an option of PALS");
  if (!request.log_dir.empty()) {
    throw UsageError({.what = "--log-dir does not work with PALS, which starts the ranks here",
                      .hint = "use --prefix-output, and write the output of the launch to a file"});
  }
  if (!request.hosts.empty()) append(arguments, {"--hosts", request.hosts});
  if (!request.hostfile.empty()) append(arguments, {"--hostfile", request.hostfile});
  if (!request.cpu_bind.empty()) {
    append(arguments, {"--cpu-bind", request.cpu_bind});
  } else if (request.threads || cpus.value_or(1) > 1) {
    append(arguments, {"--cpu-bind", "depth", "-d", std::to_string(*cpus)});
  }
  if (request.prefix_output) arguments.emplace_back("--label");
  return arguments;
}

// Options that an unknown mpirun may not support are errors, rather than being ignored.
Arguments other(const LaunchRequest& request, const LaunchEnvironment& environment) {
  for (const auto& [is_given, flag] : {std::pair(request.prefix_output, "--prefix-output"),
                                       {!request.log_dir.empty(), "--log-dir"},
                                       {!request.hostfile.empty(), "--hostfile"},
                                       {!request.hosts.empty(), "--host"},
                                       {!request.cpu_bind.empty(), "--cpu-bind"},
                                       {!request.map_by.empty(), "--map-by"},
                                       {request.nodes.value_or(1) > 1, "--nodes"}}) {
    if (is_given) {
      throw UsageError({.what = text::concat(flag, " is not known to work with ", environment.mpirun),
                        .why = "that is neither Open MPI's nor MPICH's",
                        .hint = "drop the option, or start the ranks with that command directly"});
    }
  }
  return {environment.mpirun, "-n", std::to_string(request.ranks)};
}

Arguments launcher(const LaunchRequest& request, const LaunchEnvironment& environment) {
  if (environment.in_slurm && environment.srun_mpi) return srun(request, environment);
  if (environment.in_flux) return flux_run(request, environment);
  if (request.bcast)
    throw UsageError({.what = "--bcast works only with srun", .hint = "drop it: mpirun starts the ranks here"});
  Arguments arguments;
  switch (environment.mpi) {
    case MpiFlavor::open_mpi:
      arguments = open_mpi(request, environment);
      break;
    case MpiFlavor::mpich:
      arguments = mpich(request, environment);
      break;
    case MpiFlavor::pals:
      arguments = pals(request, environment);
      break;
    case MpiFlavor::other:
      arguments = other(request, environment);
      break;
  }
  append(arguments, own_options(request, /*is_srun=*/false));
  auto variables = request.variables;
  if (const auto share = pbs_share(request, environment)) variables.push_back(text::concat("OMP_NUM_THREADS=", *share));
  append(arguments, by_env(variables));
  return arguments;
}

}  // namespace

bool has_nodes(const LaunchRequest& request, const LaunchEnvironment& environment) {
  return environment.in_slurm || environment.in_other_batch_job || !request.hostfile.empty() || !request.hosts.empty();
}

std::string gpus_text(const LaunchRequest& request) {
  return request.gpu_types.empty() ? std::to_string(request.gpus_per_node.value_or(0)) : request.gpu_types;
}

std::vector<std::string> command_line(const LaunchRequest& request, const LaunchEnvironment& environment) {
  Arguments arguments = launcher(request, environment);
  arguments.push_back(request.program);
  append(arguments, request.arguments);
  return arguments;
}

}  // namespace hortator::launching
