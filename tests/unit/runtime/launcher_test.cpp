#include "runtime/identity/launcher.hpp"

#include <hortator/error.hpp>
#include <map>

#include "support/catch.hpp"

using namespace hortator;
using runtime::Launcher;
using runtime::LauncherFacts;

namespace {

using Table = std::map<std::string, std::string>;

core::Variables facts_in(const Table& table) {
  return [&table](const char* name) -> std::optional<std::string> {
    const auto found = table.find(name);
    return found == table.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

Table operator+(Table one, const Table& other) {
  one.insert(other.begin(), other.end());
  return one;
}

// As measured on Slurm 22.05 with Open MPI 4.1, or as the launchers' documentation says.
const Table batch_script = {
    {"SLURM_JOB_ID", "4"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}};
const Table salloc_shell = {{"SLURM_JOB_ID", "2"}, {"SLURM_NTASKS", "4"}, {"SLURM_TASKS_PER_NODE", "2(x2)"}};
const Table interactive_step = salloc_shell + Table{{"SLURM_STEP_ID", "4294967290"},
                                                    {"SLURM_STEP_NUM_TASKS", "1"},
                                                    {"SLURM_PROCID", "0"},
                                                    {"SLURM_LOCALID", "0"}};
const Table third_of_four = {{"SLURM_JOB_ID", "1"},         {"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "0"},
                             {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}, {"SLURM_LOCALID", "1"}};
const Table pmix = {{"PMIX_NAMESPACE", "slurm.pmix.1.0"}, {"PMIX_RANK", "2"}};
const Table pmi2 = {{"PMI_FD", "13"}, {"PMI_JOBID", "3.0"}, {"PMI_RANK", "2"}, {"PMI_SIZE", "4"}};
const Table open_mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "8"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"PMIX_RANK", "1"}};
const Table open_mpi_alone = {{"OMPI_COMM_WORLD_RANK", "0"},
                              {"OMPI_COMM_WORLD_SIZE", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                              {"PMIX_RANK", "0"}};
const Table hydra = {{"PMI_RANK", "5"}, {"PMI_SIZE", "6"}, {"MPI_LOCALRANKID", "1"}, {"PMI_FD", "9"}};
const Table pals = {
    {"PALS_RANKID", "7"}, {"PALS_LOCAL_RANKID", "3"}, {"PMI_RANK", "7"}, {"PMI_SIZE", "12"}, {"PMI_LOCAL_RANK", "3"}};
const Table mvapich = {{"MV2_COMM_WORLD_RANK", "3"},
                       {"MV2_COMM_WORLD_SIZE", "4"},
                       {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
                       {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}};
const Table torchrun = {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}};
const Table pals_without_pmi = {{"PALS_RANKID", "7"}, {"PALS_LOCAL_RANKID", "3"}};

struct Case {
  std::string name;
  Table variables;
  LauncherFacts facts;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"./prog", {}, {}},
      {"./prog in a batch script", batch_script, {}},
      {"./prog in a shell of salloc", salloc_shell, {}},
      {"./prog in an interactive step", interactive_step, {}},
      {"./prog in a named batch step",
       batch_script + Table{{"SLURM_STEP_ID", "batch"}, {"SLURM_STEP_NUM_TASKS", "4"}},
       {}},
      {"srun --mpi=none", third_of_four, {Launcher::srun, 2, 4, 1, {}, false}},
      {"srun --mpi=pmix", third_of_four + pmix, {Launcher::srun, 2, 4, 1, {}, true}},
      {"srun --mpi=pmi2", third_of_four + pmi2, {Launcher::srun, 2, 4, 1, {}, true}},
      {"mpirun", open_mpi, {Launcher::mpirun, 1, 8, 1, {}, true}},
      {"mpirun in a batch script", batch_script + open_mpi, {Launcher::mpirun, 1, 8, 1, {}, true}},
      {"mpirun in an interactive step", interactive_step + open_mpi, {Launcher::mpirun, 1, 8, 1, {}, true}},
      {"mpirun -n 1 in a batch script", batch_script + open_mpi_alone, {Launcher::mpirun, 0, 1, 0, {}, true}},
      {"mpirun -n 1, by a daemon that is one of four tasks",
       third_of_four + open_mpi_alone,
       {Launcher::mpirun, 0, 1, 0, {}, true}},
      {"a Hydra", hydra, {Launcher::mpirun, 5, 6, 1, {}, true}},
      {"a Hydra whose daemons are Slurm's tasks", third_of_four + hydra, {Launcher::mpirun, 5, 6, 1, {}, true}},
      {"PALS", pals, {Launcher::pals, 7, 12, 3, {}, true}},
      {"PALS that says no size", pals_without_pmi, {Launcher::pals, 7, std::nullopt, 3, {}, false}},
      {"MVAPICH's mpirun_rsh", mvapich, {Launcher::mpirun, 3, 4, 1, 2, false}},
      {"torchrun", torchrun, {Launcher::torchrun, 3, 8, 1, 2, false}},
      {"mpirun of a program that also has torchrun's variables",
       torchrun + open_mpi + Table{{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
       {Launcher::mpirun, 1, 8, 1, 4, true}},
      {"srun of such a program", torchrun + third_of_four + pmix, {Launcher::srun, 2, 4, 1, {}, true}},
      {"a RANK of something else", Table{{"RANK", "colonel"}, {"WORLD_SIZE", "8"}}, {}},
      {"a RANK without a size", Table{{"RANK", "3"}}, {}},
      {"a step without a size", Table{{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "2"}}, {}},
      {"numbers that are none",
       Table{{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "-1"}, {"SLURM_STEP_NUM_TASKS", "four"}},
       {}},
  };
  return all;
}

LauncherFacts facts_of(const std::string& name) {
  for (const auto& one : cases()) {
    if (one.name == name) return runtime::read_launcher(facts_in(one.variables));
  }
  throw std::runtime_error("no such case: " + name);
}

}  // namespace

TEST_CASE("the environment of each launcher is read, also nested") {
  for (const auto& [name, variables, wanted] : cases()) {
    INFO(name);
    CHECK(runtime::read_launcher(facts_in(variables)) == wanted);
  }
}

TEST_CASE("ranks are separate exactly when the launcher has started more of them than MPI connects") {
  for (const auto& [name, variables, wanted] : cases()) {
    INFO(name);
    const int size = wanted.size.value_or(1);
    CHECK_NOTHROW(runtime::check_together(wanted, size, "Open MPI v5"));
    CHECK_NOTHROW(runtime::check_together(wanted, size + 1, "Open MPI v5"));
    if (size > 1) CHECK_THROWS_AS(runtime::check_together(wanted, size - 1, "Open MPI v5"), UsageError);
    if (size > 1) CHECK_THROWS_AS(runtime::check_together(wanted, 1, "Open MPI v5"), UsageError);
  }
}

TEST_CASE("before MPI starts only srun without any process manager is refused, and only for Open MPI") {
  for (const auto& [name, variables, wanted] : cases()) {
    INFO(name);
    if (name == "srun --mpi=none") {
      CHECK_THROWS_AS(runtime::check_startable(wanted, "Open MPI v4.1.4"), UsageError);
    } else {
      CHECK_NOTHROW(runtime::check_startable(wanted, "Open MPI v4.1.4"));
    }
    CHECK_NOTHROW(runtime::check_startable(wanted, "MPICH Version: 4.1"));
  }
  CHECK_NOTHROW(runtime::check_startable({.kind = Launcher::srun, .rank = 0, .size = 1}, "Open MPI v4.1.4"));
}

TEST_CASE("the error names the launcher, the numbers and the solution") {
  const auto text = [](const std::string& name) -> std::string {
    try {
      runtime::check_together(facts_of(name), 1, "MPICH 4.1");
    } catch (const UsageError& error) {
      CHECK(error.rank() == 0);
      return error.what();
    }
    return "";
  };
  CHECK_THAT(text("srun --mpi=none"), ContainsSubstring("srun started 4 ranks, but MPI sees only 1 rank") &&
                                          ContainsSubstring("srun --mpi=pmix"));
  CHECK_THAT(text("mpirun"), ContainsSubstring("mpirun started 8 ranks") &&
                                 ContainsSubstring("the mpirun that belongs to the program's MPI, MPICH 4.1"));
  CHECK_THAT(text("torchrun"), ContainsSubstring("torchrun started 8 ranks, but MPI sees only 1 rank") &&
                                   ContainsSubstring("mpirun or srun in its place"));
  CHECK_THAT(text("PALS"), ContainsSubstring("PALS started 12 ranks") && ContainsSubstring("load the MPI module"));
}
