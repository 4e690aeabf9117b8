#pragma once

#include <string>
#include <string_view>

#include "launch/mpi_flavor.hpp"

namespace hortator::launching {

/// A command that starts ranks, whatever its name.
struct Mpirun {
  std::string program = "mpirun";  ///< a name on PATH or a path
  MpiFlavor flavor = MpiFlavor::other;
  int major = 0;        ///< major release of Open MPI; 0: unknown
  bool answers = true;  ///< whether --version printed anything

  friend bool operator==(const Mpirun&, const Mpirun&) = default;
};

/// Describes `program` by its answer to --version.
Mpirun mpirun_of(std::string program, std::string_view version_text);

/// Whether `mpirun` can start ranks of this MPI ("Open MPI", "5.0.7"); under another MPI's mpirun each rank would run
/// alone. An unknown mpirun fits every MPI, because sites wrap theirs; every mpirun fits an MPI without a known name.
bool fits_mpi(const Mpirun& mpirun, std::string_view mpi_name, std::string_view mpi_version);

}  // namespace hortator::launching
