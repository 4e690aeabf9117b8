#include "launch/mpi_flavor.hpp"

#include <array>
#include <utility>

namespace hortator::launch {

MpiFlavor mpi_flavor(std::string_view version_text) {
  // Open MPI 5 calls its mpirun "mpirun (Open MPI) 5.0.7"; a prterun of its own says "prterun (PRRTE)".
  static constexpr std::array<std::pair<std::string_view, MpiFlavor>, 4> marks = {{
      {"Open MPI", MpiFlavor::open_mpi},
      {"OpenRTE", MpiFlavor::open_mpi},
      {"PRRTE", MpiFlavor::open_mpi},
      {"HYDRA", MpiFlavor::mpich},
  }};
  for (const auto& [mark, flavor] : marks) {
    if (version_text.find(mark) != std::string_view::npos) return flavor;
  }
  return MpiFlavor::other;
}

}  // namespace hortator::launch
