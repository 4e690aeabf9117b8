#include "core/whole_file.hpp"

#include <unistd.h>

#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
namespace fs = std::filesystem;

TEST_CASE("a file reads back as written, for any bytes and length") {
  const test::OwnFolder folder("whole-file");
  const auto file = folder.path / "deeper" / "file";
  for (const auto bytes : std::initializer_list<std::size_t>{0, 1, 4095, 4096, 4097, 100'000}) {
    INFO(bytes);
    std::string content(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i * 7);
    REQUIRE(core::write_whole(file, folder.path / "deeper" / "aside", content));
    CHECK(core::read_whole(file) == content);
    CHECK_FALSE(fs::exists(folder.path / "deeper" / "aside"));
  }
  CHECK(core::read_whole("/proc/self/stat")->starts_with(std::to_string(getpid())));
}

TEST_CASE("an unreadable file gives nothing, without an exception") {
  const test::OwnFolder folder("whole-file");
  fs::create_directories(folder.path);
  CHECK_FALSE(core::read_whole(folder.path / "missing"));
  CHECK_FALSE(core::read_whole(folder.path));  // opens, but cannot be read
}

TEST_CASE("a file above the limit gives nothing, also one without an end") {
  const test::OwnFolder folder("whole-file");
  const auto file = folder.path / "file";
  REQUIRE(core::write_whole(file, folder.path / "aside", std::string(100'000, 'x')));
  CHECK(core::read_at_most(file, 100'000) == std::string(100'000, 'x'));
  CHECK_FALSE(core::read_at_most(file, 99'999));
  CHECK_FALSE(core::read_at_most("/dev/zero", 1000));
}

TEST_CASE("the old file stays when the new one cannot be written") {
  const test::OwnFolder folder("whole-file");
  const auto file = folder.path / "file";
  REQUIRE(core::write_whole(file, folder.path / "aside", "old"));
  fs::create_directories(folder.path / "in the way");
  CHECK_FALSE(core::write_whole(file, folder.path / "in the way", "new"));
  CHECK(core::read_whole(file) == "old");
}
