#include "io/hdf5_library.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("the HDF5 that is loaded is of the release that was compiled against, or is refused, naming both") {
  const auto check = [](std::string_view built, const char* loaded) { io::check_hdf5(built, {.version = loaded}); };
  CHECK_NOTHROW(check("HDF5 1.10.8", "HDF5 1.10.11"));
  CHECK_THROWS_WITH(check("HDF5 1.10.8", "HDF5 1.14.5"),
                    ContainsSubstring("loaded is HDF5 1.14.5") && ContainsSubstring("built with HDF5 1.10.8"));
  CHECK_THROWS_AS(check("HDF5 1.10.8", "HDF5 1.1.8"), Error);
  CHECK_THROWS_AS(check("HDF5 1.14.5", "HDF5 2.14.5"), Error);
}

TEST_CASE("the HDF5 of this process is one, and parallel") {
  const auto loaded = io::loaded_hdf5();
  CHECK(loaded.files.size() == 1);
  CHECK(loaded.is_parallel);
  CHECK_NOTHROW(io::check_hdf5(io::built_hdf5_version(), loaded));
}

TEST_CASE("two HDF5s and a serial one are refused, by their files") {
  const auto check = [](std::vector<std::string> files, bool is_parallel) {
    io::check_hdf5("HDF5 1.10.8", {.version = "HDF5 1.10.8", .files = std::move(files), .is_parallel = is_parallel});
  };
  CHECK_NOTHROW(check({}, true));
  CHECK_THROWS_WITH(check({"/a/libhdf5.so", "/b/libhdf5.so"}, true),
                    ContainsSubstring("two HDF5s, /a/libhdf5.so and /b/libhdf5.so"));
  CHECK_THROWS_WITH(check({"/a/libhdf5.so"}, false), ContainsSubstring("/a/libhdf5.so, is serial"));
}
