#include "runtime/identity/launcher.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::runtime {
namespace {

/// The variables in which a launcher describes a process.
struct Source {
  Launcher kind;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

// The first that is set wins: mpirun and PALS may run inside a Slurm step (their daemons are its tasks), never the
// opposite way.
constexpr std::array<Source, 3> own_launchers = {{
    {Launcher::mpirun, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {Launcher::mpirun, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {Launcher::pals, "PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PMI_LOCAL_SIZE"},
}};
constexpr Source slurm_step = {Launcher::srun, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr};
constexpr Source hydra = {Launcher::mpirun, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
constexpr Source torchrun = {Launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};

LauncherFacts read(const Source& source, const core::Variables& variables) {
  return {.kind = source.kind,
          .rank = core::number(variables, source.rank),
          .size = core::number(variables, source.size),
          .local_rank = core::number(variables, source.local_rank),
          .local_size = source.local_size ? core::number(variables, source.local_size) : std::nullopt};
}

// Slurm's batch and interactive steps have the highest 32-bit numbers: srun has not started their processes.
bool is_in_step(const core::Variables& variables) {
  constexpr long long first_special = 0xfffffff0LL;
  long long step = 0;
  const auto id = variables("SLURM_STEP_ID");
  return id && text::parse_integer(*id, step) && step < first_special;
}

// A Hydra's ranks are children of its daemons, which are Slurm's tasks; with srun --mpi=pmi2 the ranks themselves are.
LauncherFacts read_hydra_or_step(const core::Variables& variables) {
  const auto by_step = is_in_step(variables) ? read(slurm_step, variables) : LauncherFacts{};
  const auto by_pmi = read(hydra, variables);
  const bool pmi_is_the_steps = by_pmi.rank == by_step.rank && by_pmi.size == by_step.size;
  if (by_pmi.rank && by_pmi.size && !pmi_is_the_steps) return by_pmi;
  return by_step.rank && by_step.size ? by_step : LauncherFacts{};
}

// These names are common: they count as torchrun's only in a process that no MPI launcher has started.
LauncherFacts read_torchrun(const core::Variables& variables) {
  const auto facts = read(torchrun, variables);
  return facts.rank && facts.size ? facts : LauncherFacts{};
}

LauncherFacts read_kind(const core::Variables& variables) {
  for (const auto& source : own_launchers) {
    if (core::number(variables, source.rank)) return read(source, variables);
  }
  const auto facts = read_hydra_or_step(variables);
  return facts.kind == Launcher::plain ? read_torchrun(variables) : facts;
}

std::string cure(Launcher kind, std::string_view mpi_library) {
  if (kind == Launcher::srun) {
    return "start with srun --mpi=pmix (srun --mpi=list shows what this Slurm offers; your site's documentation names "
           "the one for its "
           "MPI); runs that are meant to be apart get an srun -n 1 each";
  }
  if (kind == Launcher::pals)
    return "load the MPI module that the program was built with, so that its mpiexec starts it";
  if (kind == Launcher::torchrun) {
    return "start with mpirun or srun in its place: ranks find each other by MPI, and nothing is to be said of "
           "addresses "
           "or ports; a program that is meant to be alone needs RANK and WORLD_SIZE unset";
  }
  return text::concat("start with the mpirun that belongs to the program's MPI, ", mpi_library);
}

[[noreturn]] void refuse(const LauncherFacts& facts, std::string_view what_mpi_sees, std::string_view mpi_library) {
  UsageError error({.what = text::concat(to_string(facts.kind), " started ", text::count(*facts.size, "rank"), ", but ",
                                         what_mpi_sees),
                    .why = "each rank would be a world of its own, and all would write the same files",
                    .hint = cure(facts.kind, mpi_library)});
  error.on_rank(0);
  throw error;
}

}  // namespace

std::string_view to_string(Launcher launcher) {
  constexpr std::array<std::string_view, 5> names = {"plain start", "mpirun", "srun", "PALS", "torchrun"};
  return names[static_cast<std::size_t>(launcher)];
}

bool is_of_launcher(std::string_view variable) {
  constexpr std::array<std::string_view, 21> prefixes = {
      "OMPI_COMM_",     "OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_pmix", "OMPI_MCA_initial_wdir",
      "OMPI_UNIVERSE_", "OMPI_COMMAND=",  "OMPI_FILE_",   "OMPI_NUM_APP_", "OMPI_FIRST_",
      "OMPI_APP_CTX_",  "PMIX_",          "PMI_",         "PMI2_",         "PRTE_",
      "MV2_COMM_",      "PALS_",          "HYDI_",        "MPI_LOCAL",     "SLURM_",
      "FLUX_"};
  return std::ranges::any_of(prefixes, [&](auto prefix) { return variable.starts_with(prefix); });
}

LauncherFacts read_launcher(const core::Variables& variables) {
  auto facts = read_kind(variables);
  for (const char* name : {"PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD", "PMI_CONTROL_PORT"}) {
    facts.has_process_manager = facts.has_process_manager || variables(name);
  }
  return facts;
}

const LauncherFacts& launcher() {
  static const LauncherFacts facts = read_launcher(core::process_variables());
  return facts;
}

void check_together(const LauncherFacts& facts, int mpi_size, std::string_view mpi_library) {
  if (facts.size && *facts.size > mpi_size)
    refuse(facts, "MPI sees only " + text::count(mpi_size, "rank"), mpi_library);
}

void check_startable(const LauncherFacts& facts, std::string_view mpi_library) {
  const bool alone = facts.kind == Launcher::srun && facts.size.value_or(1) > 1 && !facts.has_process_manager;
  // Other MPIs may find their peers through Slurm's own PMI library, which leaves no trace in the environment.
  if (alone && mpi_library.starts_with("Open MPI")) refuse(facts, "gave MPI no way to find the others", mpi_library);
}

}  // namespace hortator::runtime
