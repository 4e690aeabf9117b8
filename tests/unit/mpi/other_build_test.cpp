#include "mpi/other_build.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/catch.hpp"
#include "support/files.hpp"

namespace hortator::mpi {
namespace {

namespace fs = std::filesystem;

void make(const fs::path& file) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << "\n";
}

TEST_CASE("a library for another MPI is found from each of them") {
  const test::OwnFolder prefix("other-build");
  const auto program = prefix.path / "bin" / "train", lib = prefix.path / "lib" / "libhortator.so.0.1";
  const auto of_mpich = prefix.path / "lib" / "hortator" / "mpich" / "libhortator.so.0.1";
  make(program);
  make(lib);
  CHECK(!find_other_build(program, lib, "mpich"));
  make(of_mpich);
  CHECK(find_other_build(program, lib, "mpich") ==
        OtherBuild{.program = program, .library_folder = of_mpich.parent_path()});
  CHECK(find_other_build(program, of_mpich, "openmpi") ==
        OtherBuild{.program = program, .library_folder = lib.parent_path()});
  CHECK(find_other_build(program, fs::path("/nowhere/libhortator.so.0.1"), "mpich") == std::nullopt);
}

TEST_CASE("a program that contains the library has another one beside it") {
  const test::OwnFolder prefix("other-build");
  const auto test = prefix.path / "libexec" / "hortator" / "hortator-test";
  const auto of_mpich = prefix.path / "libexec" / "hortator" / "mpich" / "hortator-test";
  make(test);
  CHECK(!find_other_build(test, test, "mpich"));
  make(of_mpich);
  CHECK(find_other_build(test, test, "mpich") == OtherBuild{.program = of_mpich});
  CHECK(find_other_build(of_mpich, of_mpich, "openmpi") == OtherBuild{.program = test});
}

TEST_CASE("a family that is asked for and not there is an error") {
  ::setenv("HORTATOR_MPI_FAMILY", "mpich", 1);
  CHECK_NOTHROW(restart_for_launcher("mpich"));
  CHECK_THROWS_WITH(restart_for_launcher("openmpi"),
                    ContainsSubstring("HORTATOR_MPI_FAMILY is mpich, and this program has no library for it"));
  ::unsetenv("HORTATOR_MPI_FAMILY");
}

}  // namespace
}  // namespace hortator::mpi
