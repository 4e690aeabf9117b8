#include "formats/hdf5/library.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("an HDF5 of another release than was compiled against is refused, naming both") {
  const auto check = [](std::string_view built, const char* loaded) {
    formats::check_hdf5(built, {.version = loaded});
  };
  CHECK_NOTHROW(check("HDF5 1.10.8", "HDF5 1.10.11"));
  CHECK_THROWS_WITH(check("HDF5 1.10.8", "HDF5 1.14.5"),
                    ContainsSubstring("loaded HDF5 is HDF5 1.14.5") && ContainsSubstring("built with HDF5 1.10.8"));
  CHECK_THROWS_AS(check("HDF5 1.10.8", "HDF5 1.1.8"), Error);
  CHECK_THROWS_AS(check("HDF5 1.14.5", "HDF5 2.14.5"), Error);
}

TEST_CASE("this process has one HDF5, which is parallel") {
  const auto loaded = formats::loaded_hdf5();
  CHECK_THAT(loaded.file, ContainsSubstring("libhdf5"));
  CHECK(loaded.others.empty());
  CHECK(loaded.is_parallel);
  CHECK_NOTHROW(formats::check_hdf5(formats::built_hdf5_version(), loaded));
}

TEST_CASE("a serial HDF5 is refused by its file, unless other libraries use it next to ours") {
  const auto check = [](std::vector<std::string> others, bool is_parallel) {
    formats::check_hdf5(
        "HDF5 1.10.8",
        {.version = "HDF5 1.10.8", .file = "/a/libhdf5.so", .others = std::move(others), .is_parallel = is_parallel});
  };
  CHECK_NOTHROW(check({}, true));
  CHECK_NOTHROW(check({"/b/libhdf5_serial.so"}, true));
  CHECK_THROWS_WITH(check({}, false), ContainsSubstring("/a/libhdf5.so, is serial"));
}
