#include "io/hdf5_version.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("the HDF5 that is loaded is of the release that was compiled against, or is refused, naming both") {
  CHECK_NOTHROW(io::check_hdf5_version(io::built_hdf5_version(), io::hdf5_version()));
  CHECK_NOTHROW(io::check_hdf5_version("HDF5 1.10.8", "HDF5 1.10.11"));
  CHECK_THROWS_WITH(io::check_hdf5_version("HDF5 1.10.8", "HDF5 1.14.5"),
                    ContainsSubstring("loaded is HDF5 1.14.5") && ContainsSubstring("built with HDF5 1.10.8"));
  CHECK_THROWS_AS(io::check_hdf5_version("HDF5 1.10.8", "HDF5 1.1.8"), Error);
  CHECK_THROWS_AS(io::check_hdf5_version("HDF5 1.14.5", "HDF5 2.14.5"), Error);
}
