#include "launch/command.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

using Words = std::vector<std::string>;

void append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

// Slurm reads --export as a list with commas and quotes of its own.
bool fits_into_export(const std::string& variable) {
  return variable.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_=+-./:@%") ==
         std::string::npos;
}

// Every launcher has a way of its own to pass variables on; env works with all of them.
Words by_env(const Words& variables) {
  if (variables.empty()) return {};
  Words words = {"env"};
  append(words, variables);
  return words;
}

// ALL, although it is the default: a job that was submitted with --export=NONE hands that on to its steps.
Words srun_variables(const Request& request) {
  if (std::all_of(request.variables.begin(), request.variables.end(), fits_into_export)) {
    Words names = {"ALL"};
    append(names, request.variables);
    return {"--export=" + text::join(names, ",")};
  }
  if (request.bcast) {
    throw UsageError({.what = "--bcast cannot pass on " + request.variables.back(),
                      .why = "srun would copy env in place of the program",
                      .hint = "export it before `hortator launch`, or leave out --bcast"});
  }
  Words words = {"--export=ALL"};
  append(words, by_env(request.variables));
  return words;
}

// One rank that is killed must not leave the others waiting for it until the job's time is over.
Words srun(const Request& request, const Facts& facts) {
  Words words = {"srun", "--mpi=" + *facts.srun_mpi, "--kill-on-bad-exit=1"};
  if (request.survives_nodes) words.emplace_back("--no-kill");
  if (request.nodes) append(words, {"-N", std::to_string(*request.nodes)});
  append(words, {"-n", std::to_string(request.ranks)});
  if (request.ranks_per_node) words.push_back("--ntasks-per-node=" + std::to_string(*request.ranks_per_node));
  const auto cpus = request.threads ? request.threads : facts.cpus_per_task;
  if (cpus) words.push_back("--cpus-per-task=" + std::to_string(*cpus));
  // Ranks of a node reach each other's devices only as long as they see them: per node, never per task. No --gpu-bind:
  // with "none" Slurm 22.05 would not even say which of the node's devices are the job's.
  if (request.gpus_per_node.value_or(0) > 0) words.push_back(text::concat("--gpus-per-node=", *request.gpus_per_node));
  if (request.prefix_output) words.emplace_back("--label");
  if (!request.log_dir.empty()) words.push_back("--output=" + request.log_dir + "/rank_%t.log");
  if (request.bcast) append(words, {"--bcast=/tmp/" + std::string(text::file_name(request.program))});
  append(words, srun_variables(request));
  return words;
}

bool has_nodes(const Request& request, const Facts& facts) {
  return facts.in_slurm || facts.in_other_batch_job || !request.hostfile.empty();
}

void check_nodes(const Request& request, const Facts& facts) {
  if (request.nodes.value_or(1) == 1 || has_nodes(request, facts)) return;
  throw UsageError({.what = text::concat(*request.nodes, " nodes were asked for, but this is no job of several"),
                    .hint = "start within a job (hortator job makes one), or name the hosts with --hostfile"});
}

// How many cores of this machine each rank gets to itself; nothing: they share all that there are, or a scheduler deals
// them out.
std::optional<int> own_cores(const Request& request, const Facts& facts) {
  if (has_nodes(request, facts) || request.ranks == 1 || request.ranks > facts.cores || facts.is_confined) return {};
  const int fair = facts.cores / request.ranks;
  return std::clamp(request.threads.value_or(fair), 1, fair);
}

// By default Open MPI gives each of two ranks one core, whatever there is, and lets more than two share a socket.
// ":OVERSUBSCRIBE" is understood by Open MPI 4 and 5; --oversubscribe is on its way out.
Words open_mpi_placement(const Request& request, const Facts& facts) {
  const bool is_given_nodes = has_nodes(request, facts);
  if (request.ranks_per_node && (is_given_nodes || request.nodes.value_or(1) > 1)) {
    const auto cores = request.threads ? text::concat(":PE=", *request.threads) : "";
    return {"--map-by", text::concat("ppr:", *request.ranks_per_node, ":node", cores)};
  }
  if (is_given_nodes) return {};
  check_nodes(request, facts);
  if (request.ranks > facts.cores) return {"--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"};
  const auto cores = own_cores(request, facts);
  if (!cores) return {"--bind-to", "none"};
  return {"--map-by", text::concat("slot:PE=", *cores), "--bind-to", "core"};
}

Words open_mpi_output(const Request& request, int major) {
  Words words;
  if (major >= 5) {
    Words forms;
    if (request.prefix_output) forms.emplace_back("tag");
    if (!request.log_dir.empty()) forms.push_back("dir=" + request.log_dir);
    if (!forms.empty()) append(words, {"--output", text::join(forms, ",")});
    return words;
  }
  if (request.prefix_output) words.emplace_back("--tag-output");
  if (!request.log_dir.empty()) append(words, {"--output-filename", request.log_dir});
  return words;
}

// Without an agent of PBS's own, ranks on other nodes run outside of the job: unlimited, and not killed with it.
Words open_mpi_in_pbs(const Facts& facts) {
  if (facts.pbs_node_file.empty()) return {};
  if (!facts.has_pbs_tmrsh) {
    throw Error({.what = "this Open MPI was built without PBS, and there is no pbs_tmrsh on PATH",
                 .why = "ranks on other nodes would not belong to the job",
                 .hint = "load an Open MPI that was built with tm, or put PBS's bin folder on PATH"});
  }
  return {"--hostfile", facts.pbs_node_file, "--mca", "plm_rsh_agent", "pbs_tmrsh"};
}

// Other launchers give all hosts the environment; Open MPI's other hosts get what is named.
Words open_mpi_variables(const Request& request, const Facts& facts) {
  if (!has_nodes(request, facts)) return {};
  Words words;
  for (const auto& name : facts.own_variables) append(words, {"-x", name});
  return words;
}

Words open_mpi(const Request& request, const Facts& facts) {
  Words words = {facts.mpirun, "-n", std::to_string(request.ranks)};
  if (facts.is_root) words.emplace_back("--allow-run-as-root");
  if (!request.hostfile.empty()) {
    append(words, {"--hostfile", request.hostfile});
  } else {
    append(words, open_mpi_in_pbs(facts));
  }
  append(words, open_mpi_placement(request, facts));
  append(words, open_mpi_output(request, facts.mpi_major));
  append(words, open_mpi_variables(request, facts));
  return words;
}

// By default Hydra binds nothing: each rank would start as many threads as the machine has cores.
Words mpich(const Request& request, const Facts& facts) {
  check_nodes(request, facts);
  Words words = {facts.mpirun, "-n", std::to_string(request.ranks)};
  if (!request.hostfile.empty()) append(words, {"-f", request.hostfile});
  if (request.ranks_per_node) append(words, {"-ppn", std::to_string(*request.ranks_per_node)});
  if (const auto cores = own_cores(request, facts)) {
    const auto each = text::concat("core:", *cores);
    append(words, {"-bind-to", each, "-map-by", each});
  }
  if (request.prefix_output) words.emplace_back("-prepend-rank");
  if (!request.log_dir.empty()) append(words, {"-outfile-pattern", request.log_dir + "/rank_%r.log"});
  return words;
}

Words pals(const Request& request, const Facts& facts) {
  Words words = {facts.mpirun, "-n", std::to_string(request.ranks)};
  if (request.ranks_per_node) append(words, {"-ppn", std::to_string(*request.ranks_per_node)});
  if (request.threads) append(words, {"--cpu-bind", "depth", "-d", std::to_string(*request.threads)});
  if (request.prefix_output) words.emplace_back("--label");
  return words;
}

// What an unknown mpirun was asked for and would not do is an error, not a surprise.
Words other(const Request& request, const Facts& facts) {
  for (const auto& [asked, flag] : {std::pair(request.prefix_output, "--prefix-output"),
                                    {!request.log_dir.empty(), "--log-dir"},
                                    {!request.hostfile.empty(), "--hostfile"},
                                    {request.nodes.value_or(1) > 1, "--nodes"}}) {
    if (asked) {
      throw UsageError({.what = text::concat(flag, " is not known of ", facts.mpirun),
                        .why = "it is neither Open MPI's nor MPICH's",
                        .hint = "leave it out, or call it by itself"});
    }
  }
  return {facts.mpirun, "-n", std::to_string(request.ranks)};
}

Words launcher(const Request& request, const Facts& facts) {
  if (facts.in_slurm && facts.srun_mpi) return srun(request, facts);
  if (request.bcast)
    throw UsageError({.what = "--bcast is srun's", .hint = "leave it out: mpirun starts the ranks here"});
  Words words;
  switch (facts.mpi) {
    case MpiFlavor::open_mpi:
      words = open_mpi(request, facts);
      break;
    case MpiFlavor::mpich:
      words = mpich(request, facts);
      break;
    case MpiFlavor::pals:
      words = pals(request, facts);
      break;
    case MpiFlavor::other:
      words = other(request, facts);
      break;
  }
  append(words, by_env(request.variables));
  return words;
}

}  // namespace

std::vector<std::string> command_line(const Request& request, const Facts& facts) {
  Words words = launcher(request, facts);
  words.push_back(request.program);
  append(words, request.arguments);
  return words;
}

}  // namespace hortator::launching
