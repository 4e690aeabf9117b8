#include "tools/launch/launch_environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <hortator/error.hpp>
#include <iostream>
#include <set>
#include <utility>

#include "core/environment/environment.hpp"
#include "core/environment/known_variables.hpp"
#include "core/environment/openmp.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "launch/job/quote.hpp"
#include "launch/pbs.hpp"
#include "launch/srun_mpi.hpp"
#include "tools/launch/machine.hpp"
#include "tools/launch/mpirun.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

using core::variable;

std::optional<int> cpus_per_task() {
  const auto value = variable("SLURM_CPUS_PER_TASK");
  long long count = 0;
  if (!value || !text::parse_integer(*value, count)) return std::nullopt;
  return static_cast<int>(count);
}

[[noreturn]] void refuse_mpirun() {
  if (!find_program("mpirun")) {
    throw Error({.what = "No mpirun on PATH",
                 .why = "it starts the ranks",
                 .hint = "load your site's MPI module, or install openmpi-bin (Debian, Ubuntu) or openmpi (Rocky)"});
  }
  throw Error({.what = "The mpirun on PATH belongs to a different MPI than the one that Hortator was built with, " +
                       built_mpi(),
               .why = "every rank would run as a separate one-rank job",
               .hint = "load the MPI module that Hortator was built with, or give its mpirun by --launcher"});
}

launching::Mpirun chosen_mpirun(const std::string& program) {
  if (find_program(program)) return identify_mpirun(program);
  throw UsageError({.what = "--launcher: no program " + text::quote(program),
                    .why = "it starts the ranks",
                    .hint = "--launcher and HORTATOR_LAUNCHER take a path, or a name on PATH"});
}

launching::Mpirun mpirun_for(const launching::Settings& settings) {
  if (const auto chosen = settings.word("launcher")) return chosen_mpirun(*chosen);
  if (const auto own = own_mpirun()) return *own;
  refuse_mpirun();
}

void set_mpirun(const launching::Mpirun& mpirun, launching::LaunchEnvironment& facts) {
  facts.mpirun = mpirun.program;
  facts.mpi = mpirun.flavor;
  facts.mpi_major = mpirun.major;
}

void detect_slurm(const launching::Settings& settings, launching::LaunchEnvironment& facts) {
  if (!find_program("srun")) {
    throw Error({.what = "No srun on PATH",
                 .why = "it starts the ranks in a Slurm allocation, and SLURM_JOB_ID is set",
                 .hint = "load the site's Slurm, or unset SLURM_JOB_ID to use mpirun"});
  }
  facts.cpus_per_task = cpus_per_task();
  facts.srun_mpi = settings.word("srun_mpi");
  if (facts.srun_mpi) return;
  facts.srun_mpi = launching::choose_srun_mpi(run_command("srun --mpi=list").output, built_mpirun().flavor);
  if (!facts.srun_mpi) set_mpirun(mpirun_for(settings), facts);
}

bool open_mpi_has(const std::string& component) {
  return run_command("ompi_info --parsable").output.find(component) != std::string::npos;
}

// Open MPI notices after two minutes that a host has vanished from the network, rather than after eight.
void shorten_keepalive() {
  for (const auto& [name, value] : {std::pair("OMPI_MCA_oob_tcp_keepalive_time", "60"),
                                    {"OMPI_MCA_oob_tcp_keepalive_intvl", "15"},
                                    {"OMPI_MCA_oob_tcp_keepalive_probes", "4"}}) {
    setenv(name, value, /*overwrite=*/0);
  }
}

// Open MPI's own support for LSF counts; otherwise the list of hosts and blaunch do the same.
void detect_lsf(launching::LaunchEnvironment& facts) {
  facts.in_other_batch_job = true;
  facts.batch_title = "LSF";
  const auto hosts = variable("LSB_DJOB_HOSTFILE");
  if (facts.mpi != launching::MpiFlavor::open_mpi || !hosts || open_mpi_has(":plm:lsf:")) return;
  facts.node_file = *hosts;
  if (find_program("blaunch")) facts.agent = (data_folder() / "jobs" / "lsf_agent.sh").string();
}

// Where Open MPI has no support for it, it would start all ranks on this host.
void detect_grid_engine(launching::LaunchEnvironment& facts) {
  facts.in_other_batch_job = true;
  facts.batch_title = "Grid Engine";
  if (facts.mpi != launching::MpiFlavor::open_mpi || open_mpi_has(":ras:gridengine:")) return;
  throw Error({.what = "This Open MPI was built without support for Grid Engine",
               .why = "all ranks would run on the first host of the job",
               .hint = "load an Open MPI that was built with --with-sge, or use the script of `hortator job`"});
}

void detect_batch_job(launching::LaunchEnvironment& facts) {
  if (variable("LSB_JOBID")) return detect_lsf(facts);
  if (variable("SGE_ROOT") && variable("PE_HOSTFILE")) return detect_grid_engine(facts);
  const auto job = launching::read_pbs(variable, core::read_whole);
  facts.in_other_batch_job = job.has_value();
  if (!job) return;
  if (facts.mpi == launching::MpiFlavor::open_mpi && !open_mpi_has(":plm:tm:")) facts.node_file = job->node_file;
  if (find_program("pbs_tmrsh") || std::filesystem::exists(variable("PBS_CONF_FILE").value_or("/etc/pbs.conf")))
    facts.agent = (data_folder() / "jobs" / "pbs_agent.sh").string();
  facts.pbs_cpus = job->cpus;
  if (job->hosts.size() > 1) facts.slots_of_host = job->slots_of_host;
  facts.shares_node = job->cpus_of_host && facts.cpus > *job->cpus_of_host;
  // At qdel PBS signals mpirun, too, which would kill the ranks one second later. PBS itself kills after ten.
  for (const auto* name : {"OMPI_MCA_odls_base_sigkill_timeout", "PRTE_MCA_odls_base_sigkill_timeout"})
    setenv(name, "8", /*overwrite=*/0);
}

}  // namespace

launching::LaunchEnvironment facts_elsewhere(const launching::Settings& settings) {
  const auto built = built_mpirun();
  const auto chosen = settings.word("launcher");
  auto mpirun = chosen ? identify_mpirun(*chosen) : own_mpirun().value_or(built);
  if (mpirun.flavor == launching::MpiFlavor::other) mpirun = {mpirun.program, built.flavor, built.major};
  launching::LaunchEnvironment facts;
  set_mpirun(mpirun, facts);
  return facts;
}

launching::LaunchEnvironment detect_environment(const launching::Settings& settings) {
  launching::LaunchEnvironment facts{.in_slurm = variable("SLURM_JOB_ID").has_value(),
                                     .is_root = geteuid() == 0,
                                     .cores = core_count(),
                                     .cpus = cpu_count(),
                                     .asked_threads = core::asked_threads(variable),
                                     .has_wait_policy = core::has_wait_policy(variable),
                                     .is_confined = is_confined(),
                                     .own_variables = core::own_variables()};
  if (facts.in_slurm) {
    detect_slurm(settings, facts);
    return facts;
  }
  if (variable("FLUX_URI") && find_program("flux") && !settings.word("launcher")) {
    facts.in_flux = facts.in_other_batch_job = true;
    facts.batch_title = "Flux";
    facts.mpi = built_mpirun().flavor;
    return facts;
  }
  const auto mpirun = mpirun_for(settings);
  load_library_for(mpirun);
  set_mpirun(mpirun, facts);
  shorten_keepalive();
  detect_batch_job(facts);
  return facts;
}

namespace {

std::set<std::string> first_fields(const std::string& file) {
  std::set<std::string> fields;
  for (const auto& line : text::split(core::read_whole(file).value_or(""), '\n')) {
    const auto field = line.substr(0, line.find_first_of(" \t\r"));
    if (!field.empty()) fields.insert(field);
  }
  return fields;
}

// The hosts of a job of LSF, Grid Engine or Flux; 0 outside of these.
int hosts_of_other_batch_jobs() {
  if (const auto file = variable("LSB_DJOB_HOSTFILE"); file && variable("LSB_JOBID"))
    return static_cast<int>(first_fields(*file).size());
  if (const auto file = variable("PE_HOSTFILE"); file && variable("SGE_ROOT"))
    return static_cast<int>(first_fields(*file).size());
  long long brokers = 0;
  const bool in_flux = variable("FLUX_URI") && find_program("flux");
  if (!in_flux || !text::parse_integer(text::first_line(output_of("flux getattr size")), brokers)) return 0;
  return static_cast<int>(brokers);
}

}  // namespace

std::vector<std::string> remaining_nodes() {
  const auto job = variable("SLURM_JOB_ID");
  if (!job) return {};
  const auto list = text::first_line(output_of("squeue -h -o %N -j " + launching::shell_quote(*job)));
  const auto names = output_of("scontrol show hostnames " + launching::shell_quote(list));
  auto nodes = text::split(names, '\n');
  std::erase(nodes, "");
  if (list.empty() || nodes.empty()) return {};
  const auto number = std::to_string(nodes.size());
  for (const auto* name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}) setenv(name, list.c_str(), 1);
  for (const auto* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) setenv(name, number.c_str(), 1);
  for (const auto* name : {"SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE", "SLURM_NTASKS", "SLURM_NPROCS"}) {
    unsetenv(name);
  }
  return nodes;
}

int nodes_at_hand() {
  if (!variable("SLURM_JOB_ID")) {
    if (const auto hosts = hosts_of_other_batch_jobs(); hosts > 0) return hosts;
    const auto job = launching::read_pbs(variable, core::read_whole);
    return job && !job->hosts.empty() ? static_cast<int>(job->hosts.size()) : 1;
  }
  long long nodes = 0;
  const bool is_known = text::parse_integer(variable("SLURM_NNODES").value_or(""), nodes) && nodes > 0;
  return is_known ? static_cast<int>(nodes) : 1;
}

std::vector<std::string> hosts_at_hand() {
  if (variable("SLURM_JOB_ID")) return {};
  const auto job = launching::read_pbs(variable, core::read_whole);
  return job ? job->hosts : std::vector<std::string>();
}

std::vector<std::string> remote_shell() {
  for (const auto* name : {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"}) {
    const auto agent = variable(name);
    if (!agent) continue;
    auto arguments = text::split(*agent, ' ');
    std::erase(arguments, "");
    return arguments;
  }
  return {"ssh", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5"};
}

void note_assumed_ranks(const launching::LaunchRequest& request) {
  if (request.one_for_each.empty()) return;
  std::cerr << "hortator: no number of ranks was given: one for each " << request.one_for_each << ", "
            << text::count(request.ranks, "rank") << " in all (use -n or --ranks-per-node for another number)\n";
}

void check_program(const std::string& program) {
  if (find_program(program)) return;
  const bool has_path = program.find('/') != std::string::npos;
  if (!has_path && find_program("./" + program)) {
    throw UsageError(
        {.what = "No program " + text::quote(program) + " on PATH", .hint = "did you mean './" + program + "'?"});
  }
  if (has_path && std::filesystem::exists(program)) {
    throw UsageError({.what = text::quote(program) + " is not an executable file", .hint = "build it, or chmod +x it"});
  }
  throw UsageError({.what = "No program " + text::quote(program) + (has_path ? "" : " on PATH"),
                    .hint = "check the name and the folder"});
}

}  // namespace hortator::tools
