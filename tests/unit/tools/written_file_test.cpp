#include "tools/written_file.hpp"

#include <filesystem>

#include "core/whole_file.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("write_file replaces an existing file") {
  tools::write_file("written_file.txt", "older and longer");
  tools::write_file("written_file.txt", "new");
  CHECK(core::read_whole("written_file.txt") == "new");
  std::filesystem::remove("written_file.txt");
}

TEST_CASE("write_file reports the file, the system's reason and a hint") {
  CHECK_THROWS_WITH(
      tools::write_file("absent/file.txt", "x"),
      ContainsSubstring("'absent/file.txt' cannot be written (No such file or directory); choose a folder"));
  CHECK_THROWS_WITH(tools::write_file("/dev/full", "x"), ContainsSubstring("No space left on device"));
}
