#include "cli/surroundings.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <hortator/error.hpp>

#include "base/text.hpp"
#include "base/whole_file.hpp"
#include "cli/machine.hpp"
#include "cli/programs.hpp"
#include "launching/pbs.hpp"
#include "launching/quote.hpp"
#include "launching/srun_mpi.hpp"

namespace hortator::cli {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::vector<std::string> own_variables() {
  std::vector<std::string> names;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view assignment(*one);
    if (assignment.starts_with("HORTATOR_")) names.emplace_back(assignment.substr(0, assignment.find('=')));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<int> cpus_per_task() {
  const auto words = variable("SLURM_CPUS_PER_TASK");
  long long count = 0;
  if (!words || !text::parse_integer(*words, count)) return std::nullopt;
  return static_cast<int>(count);
}

void require(const std::string& launcher, const std::string& hint) {
  if (!find_program(launcher))
    throw Error({.what = "there is no " + launcher + " on PATH", .why = "it starts the ranks", .hint = hint});
}

void require_mpirun() {
  require("mpirun", "load your site's MPI module, or install openmpi-bin (Debian, Ubuntu) or openmpi (Rocky)");
}

void look_at_slurm(const launching::Settings& settings, launching::Facts& facts) {
  require(
      "srun",
      "this is a Slurm allocation (SLURM_JOB_ID is set): load the site's Slurm, or unset SLURM_JOB_ID to use mpirun");
  facts.cpus_per_task = cpus_per_task();
  facts.srun_mpi = settings.word("mpi");
  if (facts.srun_mpi) return;
  // Whose MPI the program is built with, nobody knows before it runs: the mpirun on PATH is the best guess.
  if (find_program("mpirun")) look_at_mpi(facts);
  const auto flavor = facts.mpi == launching::MpiFlavor::other ? launching::MpiFlavor::open_mpi : facts.mpi;
  facts.srun_mpi = launching::choose_srun_mpi(result_of("srun --mpi=list").output, flavor);
  if (!facts.srun_mpi) require_mpirun();
}

void look_at_pbs(launching::Facts& facts) {
  const auto job = launching::read_pbs(variable, base::read_whole);
  facts.in_other_batch_job = job || variable("LSB_JOBID");
  if (!job) return;
  const bool knows_pbs = output_of("ompi_info --parsable").find(":plm:tm:") != std::string::npos;
  if (facts.mpi == launching::MpiFlavor::open_mpi && !knows_pbs) facts.pbs_node_file = job->node_file;
  facts.has_pbs_tmrsh = find_program("pbs_tmrsh").has_value();
}

}  // namespace

void look_at_mpi(launching::Facts& facts) {
  auto version = output_of("mpirun --version");
  if (version.empty() && find_program("mpiexec")) version = output_of("mpiexec --version");
  facts.mpi = launching::mpi_flavor(version);
  facts.mpi_major = launching::mpi_major(version);
}

launching::Facts look_around(const launching::Settings& settings) {
  launching::Facts facts{.in_slurm = variable("SLURM_JOB_ID").has_value(),
                         .is_root = geteuid() == 0,
                         .cores = core_count(),
                         .is_confined = is_confined(),
                         .own_variables = own_variables()};
  if (facts.in_slurm) {
    look_at_slurm(settings, facts);
    return facts;
  }
  const bool has_pals = variable("PBS_NODEFILE") && !find_program("mpirun") && find_program("mpiexec");
  if (!has_pals) require_mpirun();
  look_at_mpi(facts);
  look_at_pbs(facts);
  return facts;
}

std::optional<int> count_nodes_again() {
  const auto job = variable("SLURM_JOB_ID");
  if (!job) return std::nullopt;
  const auto list = text::split(output_of("squeue -h -o %N -j " + launching::shell_quote(*job)), '\n').front();
  const auto names = output_of("scontrol show hostnames " + launching::shell_quote(list));
  const auto count = std::count(names.begin(), names.end(), '\n');
  if (list.empty() || count == 0) return std::nullopt;
  const auto number = std::to_string(count);
  for (const auto* name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}) setenv(name, list.c_str(), 1);
  for (const auto* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) setenv(name, number.c_str(), 1);
  for (const auto* name : {"SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE", "SLURM_NTASKS", "SLURM_NPROCS"}) {
    unsetenv(name);
  }
  return static_cast<int>(count);
}

void check_program(const std::string& program) {
  if (find_program(program)) return;
  const bool has_path = program.find('/') != std::string::npos;
  if (!has_path && find_program("./" + program)) {
    throw UsageError({.what = "there is no program " + text::quote(program) + " on PATH",
                      .hint = "did you mean './" + program + "'?"});
  }
  if (has_path && std::filesystem::exists(program)) {
    throw UsageError({.what = text::quote(program) + " is not an executable file", .hint = "build it, or chmod +x it"});
  }
  throw UsageError({.what = "there is no program " + text::quote(program) + (has_path ? "" : " on PATH"),
                    .hint = "check the name and the folder"});
}

}  // namespace hortator::cli
