#include "core/environment/mpi_family.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::core {

std::string mpi_family_of_launcher(const Variables& variables) {
  if (const auto chosen = variables("HORTATOR_MPI_FAMILY")) {
    if (*chosen == "openmpi" || *chosen == "mpich") return *chosen;
    throw UsageError(
        {.what = text::concat("HORTATOR_MPI_FAMILY: expected openmpi or mpich, got ", text::quote(*chosen)),
         .why = "it names the MPI that has started this program"});
  }
  if (variables("OMPI_COMM_WORLD_RANK")) return "openmpi";
  for (const auto* name : {"MV2_COMM_WORLD_RANK", "PALS_RANKID"}) {
    if (variables(name)) return "mpich";
  }
  // Slurm's own PMI-2 has these variables, too, for the programs of any MPI.
  const bool is_hydra = variables("PMI_RANK") && variables("PMI_SIZE") && !variables("SLURM_STEP_ID");
  return is_hydra ? "mpich" : "";
}

}  // namespace hortator::core
