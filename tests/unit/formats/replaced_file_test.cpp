#include "formats/file/replaced_file.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;

TEST_CASE("a file is replaced as a whole") {
  const test::OwnFolder folder("replaced_file");
  std::filesystem::create_directory(folder.path);
  const auto path = folder.path / "file";
  for (const std::string content : {"first", "second"}) {
    formats::replace_file(path, [&](const formats::RawFile& file) {
      file.write_at(0, content.data(), content.size());
      CHECK(test::content_of(path) == (content == "first" ? "" : "first"));
    });
    CHECK(test::content_of(path) == content);
  }
}

TEST_CASE("a replacement that cannot be written leaves the file as it is, and nothing beside it") {
  const test::OwnFolder folder("replaced_file");
  std::filesystem::create_directory(folder.path);
  const auto path = folder.path / "file";
  std::ofstream(path) << "before";
  CHECK_THROWS_AS(formats::replace_file(path,
                                        [](const formats::RawFile& file) {
                                          file.write_at(0, "half", 4);
                                          throw std::runtime_error("a full disk");
                                        }),
                  std::runtime_error);
  CHECK(test::content_of(path) == "before");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}
