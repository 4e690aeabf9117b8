#include "launch/mpirun.hpp"

#include <utility>

namespace hortator::launching {

Mpirun mpirun_of(std::string program, std::string_view version_text) {
  return {.program = std::move(program),
          .flavor = mpi_flavor(version_text),
          .major = mpi_major(version_text),
          .answers = !version_text.empty()};
}

bool fits_mpi(const Mpirun& mpirun, std::string_view mpi_name, std::string_view mpi_version) {
  if (mpirun.flavor == MpiFlavor::other || mpi_name.empty()) return true;
  const bool is_open_mpi = mpirun.flavor == MpiFlavor::open_mpi;
  if (is_open_mpi != (mpi_name == "Open MPI")) return false;
  const std::string major(mpi_version.substr(0, mpi_version.find('.')));
  return !is_open_mpi || mpirun.major == 0 || major.empty() || std::to_string(mpirun.major) == major;
}

}  // namespace hortator::launching
