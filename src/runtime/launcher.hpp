#pragma once

#include <optional>
#include <string_view>

#include "core/environment/environment.hpp"

namespace hortator::runtime {

/// Who started this process: mpirun (Open MPI's, MVAPICH's, or a Hydra), srun, PALS's mpiexec, torchrun, or nobody
/// (./prog, also in a batch script or an interactive shell of a job: those have the job's variables, but are no task
/// among several).
enum class Launcher { plain, mpirun, srun, pals, torchrun };

std::string_view to_string(Launcher launcher);

/// What the launcher's environment says of this process. MPI knows better once it runs; a difference is an error.
struct LauncherFacts {
  Launcher kind = Launcher::plain;
  std::optional<int> rank = {};
  std::optional<int> size = {};
  std::optional<int> local_rank = {};
  std::optional<int> local_size = {};  ///< ranks on this machine
  bool has_process_manager = false;    ///< a PMI or PMIx server is there for MPI to ask who its peers are

  friend bool operator==(const LauncherFacts&, const LauncherFacts&) = default;
};

LauncherFacts read_launcher(const core::Variables& variables);

/// The facts of this process, read the first time they are asked for: before MPI starts, since some MPIs add to the
/// environment.
const LauncherFacts& launcher();

/// Throws when the launcher knows more ranks than MPI: each would take itself for the main rank, and all would write
/// the same files. Every rank throws.
void check_together(const LauncherFacts& facts, int mpi_size, std::string_view mpi_library);

/// The same, as far as it can be known before MPI starts: where Open MPI's own start would end the process with words
/// that name no cure.
void check_startable(const LauncherFacts& facts, std::string_view mpi_library);

}  // namespace hortator::runtime
