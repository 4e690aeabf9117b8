#pragma once

#include <optional>
#include <string_view>

#include "core/environment/environment.hpp"

namespace hortator::runtime {

/// What started this process: mpirun (of Open MPI or MVAPICH, or a Hydra), srun, PALS's mpiexec, torchrun, or no
/// launcher. `plain` is ./prog, also in a batch script or an interactive shell of a job: those have the job's variables
/// but are not one of several tasks.
enum class Launcher { plain, mpirun, srun, pals, torchrun };

std::string_view to_string(Launcher launcher);

/// This process as described by the launcher's environment. MPI is authoritative once it runs; a difference is an
/// error.
struct LauncherFacts {
  Launcher kind = Launcher::plain;
  std::optional<int> rank = {};
  std::optional<int> size = {};
  std::optional<int> local_rank = {};
  std::optional<int> local_size = {};  ///< ranks on this machine
  bool has_process_manager = false;    ///< a PMI or PMIx server is there, through which MPI finds its peers

  friend bool operator==(const LauncherFacts&, const LauncherFacts&) = default;
};

/// Whether a variable ("NAME=value") identifies this process as a rank of a job. A user's settings of an MPI do not.
bool is_of_launcher(std::string_view variable);

LauncherFacts read_launcher(const core::Variables& variables);

/// The facts of this process, read in the first call. Call it before MPI starts, since some MPIs add to the
/// environment.
const LauncherFacts& launcher();

/// Throws on every rank when the launcher has started more ranks than MPI connects: each would act as the main rank,
/// and all would write the same files.
void check_together(const LauncherFacts& facts, int mpi_size, std::string_view mpi_library);

/// The same, as far as it is known before MPI starts. It covers cases in which Open MPI's start would end the process
/// with a message that offers no solution.
void check_startable(const LauncherFacts& facts, std::string_view mpi_library);

}  // namespace hortator::runtime
