#include "mpi/library.hpp"

#include <mpi.h>

#include <cctype>

#include "core/loaded_libraries.hpp"
#include "core/text/text.hpp"
#include "mpi/environment.hpp"
#include "mpi/error.hpp"

namespace hortator::mpi {
namespace {

bool is_open_mpi(std::string_view version) { return version.find("Open MPI") != std::string_view::npos; }

// "4" of "Open MPI v4.1.4"
std::string_view major(std::string_view version) {
  const auto begin = version.find_first_of("0123456789");
  if (begin == std::string_view::npos) return "";
  const auto digits = version.substr(begin);
  return digits.substr(0, digits.find_first_not_of("0123456789"));
}

}  // namespace

std::string built_library() {
#if defined(OMPI_MAJOR_VERSION)
  return text::concat("Open MPI v", OMPI_MAJOR_VERSION, '.', OMPI_MINOR_VERSION, '.', OMPI_RELEASE_VERSION);
#elif defined(I_MPI_VERSION)
  return text::concat("Intel MPI ", I_MPI_VERSION);
#elif defined(MVAPICH2_VERSION)
  return text::concat("MVAPICH ", MVAPICH2_VERSION);
#elif defined(MPICH_VERSION)
  return text::concat("MPICH ", MPICH_VERSION);
#else
  return text::concat("an MPI of standard ", MPI_VERSION, '.', MPI_SUBVERSION);
#endif
}

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> files;
  // Skips their Fortran and C++ libraries, which have other names.
  for (const auto* beginning : {"libmpi.so", "libmpich.so", "libmpi_cray.so", "libmpi_gnu"}) {
    for (auto& file : core::loaded_libraries(beginning)) files.push_back(std::move(file));
  }
  return files;
}

bool is_compatible(std::string_view built, std::string_view loaded) {
  if (is_open_mpi(built) != is_open_mpi(loaded)) return false;
  return !is_open_mpi(built) || major(built) == major(loaded);
}

void check_library(std::string_view built, std::string_view loaded, std::span<const std::string> files) {
  constexpr auto hint =
      "load the MPI module that Hortator was built with, and no other, and build programs with it; `hortator doctor` "
      "says what is loaded";
  if (!is_compatible(built, loaded)) {
    throw MpiError(
        {.what = text::concat("The MPI that was loaded is ", loaded, ", this Hortator was built with ", built),
         .why = "their binary interfaces differ",
         .hint = hint});
  }
  if (files.size() > 1) {
    throw MpiError({.what = text::concat("This process has loaded two MPIs, ", text::join(files, " and "),
                                         "; this Hortator was built with ", built),
                    .why = "each would take the other's calls",
                    .hint = hint});
  }
}

void check_library() { check_library(built_library(), library_version(), loaded_libraries()); }

}  // namespace hortator::mpi
