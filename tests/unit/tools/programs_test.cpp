#include "tools/programs.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/catch.hpp"

using namespace hortator::tools;
namespace fs = std::filesystem;

TEST_CASE("a program is found where a shell would find it") {
  CHECK(find_program("sh"));
  CHECK(find_program("/bin/sh") == fs::path("/bin/sh"));
  CHECK(!find_program("no-such-program-anywhere"));
  CHECK(!find_program("/bin"));
  CHECK(!find_program("./no-such-program"));
  std::ofstream("plain.txt") << "no program";
  CHECK(!find_program("./plain.txt"));
  fs::permissions("plain.txt", fs::perms::owner_all);
  CHECK(find_program("./plain.txt"));
  fs::remove("plain.txt");
}

TEST_CASE("what a program prints can be read, and one that is not there prints nothing") {
  CHECK(output_of("echo hello; echo noise >&2") == "hello\n");
  CHECK(output_of("no-such-program-anywhere").empty());
}

TEST_CASE("a program that cannot be started is an error that names it") {
  CHECK_THROWS_WITH(replace_process({"no-such-program-anywhere", "x"}),
                    ContainsSubstring("'no-such-program-anywhere' could not be started: No such file"));
}
