#pragma once

#include <string>
#include <string_view>

#include "launch/mpi_flavor.hpp"

namespace hortator::launching {

/// A command that starts ranks, by whatever name it is called.
struct Mpirun {
  std::string program = "mpirun";  ///< as a shell finds it
  MpiFlavor flavor = MpiFlavor::other;
  int major = 0;        ///< release of Open MPI; 0: not known
  bool answers = true;  ///< something to --version

  friend bool operator==(const Mpirun&, const Mpirun&) = default;
};

/// What `program` is by its answer to --version.
Mpirun mpirun_of(std::string program, std::string_view version_text);

/// Whether ranks of this MPI ("Open MPI", "5.0.7") find each other when `mpirun` starts them; under another MPI's each
/// would think that it is alone. One that does not say whose it is counts as fitting, because sites wrap theirs, and
/// anything fits an MPI without a known name.
bool fits_mpi(const Mpirun& mpirun, std::string_view mpi_name, std::string_view mpi_version);

}  // namespace hortator::launching
