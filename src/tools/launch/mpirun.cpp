#include "tools/launch/mpirun.hpp"

#include <array>

#include "core/text/text.hpp"
#include "launch/job/quote.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {

std::optional<launching::Mpirun> own_mpirun() {
  static constexpr std::array<const char*, 3> candidates = {"mpirun", "mpiexec", HORTATOR_MPIEXEC};
  for (const std::string program : candidates) {
    if (program.empty() || !find_program(program)) continue;
    const auto found = identify_mpirun(program);
    if (!found.answers) continue;  // cannot run, such as with a missing library
    if (launching::fits_mpi(found, HORTATOR_MPI_NAME, HORTATOR_MPI_VERSION)) return found;
  }
  return std::nullopt;
}

launching::Mpirun identify_mpirun(const std::string& program) {
  return launching::mpirun_of(program, output_of(launching::shell_quote(program) + " --version"));
}

launching::Mpirun built_mpirun() {
  auto built = launching::mpirun_of("mpirun", text::concat("mpirun (", HORTATOR_MPI_NAME, ") ", HORTATOR_MPI_VERSION));
  // All other MPIs derive from MPICH.
  if (built.flavor == launching::MpiFlavor::other) built.flavor = launching::MpiFlavor::mpich;
  return built;
}

std::string built_mpi() { return text::concat(HORTATOR_MPI_NAME, ' ', HORTATOR_MPI_VERSION); }

}  // namespace hortator::tools
