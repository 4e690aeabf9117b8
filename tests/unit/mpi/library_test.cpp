#include "mpi/environment.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;

namespace {
const std::vector<std::string> one = {"/usr/lib/libmpi.so.40"};
}

TEST_CASE("the MPI of this process is the one that was compiled against, and the only one") {
  CHECK(mpi::loaded_libraries().size() == 1);
  CHECK_NOTHROW(mpi::check_library());
}

TEST_CASE("MPI libraries with a common binary interface are compatible") {
  CHECK(mpi::is_compatible("Open MPI v4.1.4", "Open MPI v4.0.3"));
  CHECK(!mpi::is_compatible("Open MPI v4.1.4", "Open MPI v5.0.7"));
  CHECK(!mpi::is_compatible("Open MPI v4.1.4", "MPICH Version: 4.0.2"));
  CHECK(!mpi::is_compatible("MPICH 4.0.2", "Open MPI v4.1.4"));
  CHECK(mpi::is_compatible("MPICH 3.4.1", "MPI VERSION : CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)"));
  CHECK(mpi::is_compatible("MPICH 4.0.2", "Intel(R) MPI Library 2021.8 for Linux* OS"));
}

TEST_CASE("an incompatible MPI is refused, naming both") {
  CHECK_THROWS_WITH(mpi::check_library("Open MPI v4.1.4", "Open MPI v5.0.7", one),
                    ContainsSubstring("loaded is Open MPI v5.0.7, this Hortator was built with Open MPI v4.1.4"));
}

TEST_CASE("two MPIs in one process are refused, naming both") {
  const std::vector<std::string> two = {"/usr/lib/libmpi.so.40", "/opt/mpich/lib/libmpi.so.12"};
  CHECK_THROWS_WITH(mpi::check_library("Open MPI v4.1.4", "Open MPI v4.1.4", two),
                    ContainsSubstring("/usr/lib/libmpi.so.40 and /opt/mpich/lib/libmpi.so.12"));
}
