#include "tools/launch/mpirun.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "launch/job/quote.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

// Nothing for the MPI that Hortator was built with.
std::optional<std::filesystem::path> library_folder_for(const launching::Mpirun& mpirun) {
  using launching::MpiFlavor;
  const bool is_open_mpi = mpirun.flavor == MpiFlavor::open_mpi;
  if (mpirun.flavor == MpiFlavor::other || is_open_mpi == (built_mpirun().flavor == MpiFlavor::open_mpi)) return {};
  const std::string family = is_open_mpi ? "openmpi" : "mpich";
  const auto families = text::split(HORTATOR_MPI_ALSO, ';');
  if (std::ranges::find(families, family) == families.end()) return {};
  return library_folder() / "hortator" / family;
}

}  // namespace

std::optional<launching::Mpirun> own_mpirun() {
  static constexpr std::array<const char*, 3> candidates = {"mpirun", "mpiexec", HORTATOR_MPIEXEC};
  for (const std::string program : candidates) {
    if (program.empty() || !find_program(program)) continue;
    const auto found = identify_mpirun(program);
    if (!found.answers) continue;  // cannot run, such as with a missing library
    if (launching::fits_mpi(found, HORTATOR_MPI_NAME, HORTATOR_MPI_VERSION) || has_library_for(found)) return found;
  }
  return std::nullopt;
}

bool has_library_for(const launching::Mpirun& mpirun) { return library_folder_for(mpirun).has_value(); }

void load_library_for(const launching::Mpirun& mpirun) {
  const auto folder = library_folder_for(mpirun);
  if (!folder) return;
  const auto before = core::variable("LD_LIBRARY_PATH");
  setenv("LD_LIBRARY_PATH", before ? text::concat(folder->string(), ':', *before).c_str() : folder->c_str(), 1);
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
