#include "launch/mpi_flavor.hpp"

#include <array>
#include <utility>

namespace hortator::launching {

MpiFlavor mpi_flavor(std::string_view version_text) {
  // Open MPI 5 prints "mpirun (Open MPI) 5.0.7"; a separate prterun prints "prterun (PRRTE)".
  static constexpr std::array<std::pair<std::string_view, MpiFlavor>, 6> marks = {{
      {"Open MPI", MpiFlavor::open_mpi},
      {"OpenRTE", MpiFlavor::open_mpi},
      {"PRRTE", MpiFlavor::open_mpi},
      {"HYDRA", MpiFlavor::mpich},
      {"PALS", MpiFlavor::pals},
      {"pals", MpiFlavor::pals},
  }};
  for (const auto& [mark, flavor] : marks) {
    if (version_text.find(mark) != std::string_view::npos) return flavor;
  }
  return MpiFlavor::other;
}

int mpi_major(std::string_view version_text) {
  // Open MPI 5 starts ranks with PRRTE 3.
  if (version_text.find("PRRTE") != std::string_view::npos) return 5;
  const auto mark = version_text.find(") ");
  if (mark == std::string_view::npos || mark + 2 >= version_text.size()) return 0;
  const char digit = version_text[mark + 2];
  return digit >= '0' && digit <= '9' ? digit - '0' : 0;
}

}  // namespace hortator::launching
