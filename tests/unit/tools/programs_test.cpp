#include "tools/programs.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/catch.hpp"

using namespace hortator::tools;
namespace fs = std::filesystem;

TEST_CASE("find_program searches as a shell does") {
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

TEST_CASE("output_of returns what a program prints, and nothing for a missing one") {
  CHECK(output_of("echo hello; echo noise >&2") == "hello\n");
  CHECK(output_of("no-such-program-anywhere").empty());
  CHECK(output_of("seq 1 3000").ends_with("\n3000\n"));
}

TEST_CASE("replace_process reports a program that cannot be started") {
  CHECK_THROWS_WITH(replace_process({"no-such-program-anywhere", "x"}),
                    ContainsSubstring("'no-such-program-anywhere' could not be started: No such file"));
}
