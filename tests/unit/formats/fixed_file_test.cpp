#include "formats/file/fixed_file.hpp"

#include <array>
#include <chrono>
#include <fstream>

#include "formats/file/file_error.hpp"
#include "formats/file/file_pool.hpp"
#include "formats/tensor/stored_rows.hpp"
#include "support/catch.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

fs::path write(const std::string& name, const std::string& bytes) {
  std::ofstream(name, std::ios::binary) << bytes;
  return name;
}

}  // namespace

TEST_CASE("an unchanged file can be read at any offset") {
  const formats::FixedFile file(write("fixed", "0123456789"));
  std::array<char, 3> three{};
  file.read_at(4, three.data(), three.size());
  CHECK(std::string(three.data(), three.size()) == "456");
  CHECK(file.bytes() == 10);
  CHECK_NOTHROW(file.require_unchanged());
}

TEST_CASE("a truncated, grown or rewritten file is an error, not a signal") {
  std::array<char, 3> three{};
  const formats::FixedFile cut(write("cut", "0123456789"));
  fs::resize_file("cut", 4);
  CHECK_THROWS_WITH(cut.read_at(6, three.data(), three.size()),
                    ContainsSubstring("cut") && ContainsSubstring("had 10 bytes") && ContainsSubstring("has 4 now"));
  CHECK_THROWS_AS(cut.require_unchanged(), formats::FileError);

  const formats::FixedFile grown(write("grown", "0123456789"));
  std::ofstream("grown", std::ios::app) << "x";
  CHECK_NOTHROW(grown.read_at(6, three.data(), three.size()));
  CHECK_THROWS_WITH(grown.require_unchanged(), ContainsSubstring("has 11 now"));

  // The same length, another modification time.
  const formats::FixedFile rewritten(write("rewritten", "0123456789"));
  fs::last_write_time("rewritten", fs::last_write_time("rewritten") + std::chrono::milliseconds(1));
  CHECK_THROWS_WITH(rewritten.require_unchanged(), ContainsSubstring("was changed while it was in use"));
}

TEST_CASE("a file that was replaced by rename can still be read") {
  const formats::FixedFile file(write("old", "0123456789"));
  write("new", "other");
  fs::rename("new", "old");
  std::array<char, 3> three{};
  file.read_at(7, three.data(), three.size());
  CHECK(std::string(three.data(), three.size()) == "789");
  CHECK_NOTHROW(file.require_unchanged());
}

TEST_CASE("folders, devices and missing files are refused") {
  CHECK_THROWS_WITH(formats::FixedFile("."), ContainsSubstring("not a regular file"));
  CHECK_THROWS_WITH(formats::FixedFile("/dev/null"), ContainsSubstring("not a regular file"));
  CHECK_THROWS_WITH(formats::FixedFile("no/such"), ContainsSubstring("No such file"));
}

TEST_CASE("writing to a map of a file does not change the file") {
  const formats::FixedFile file(write("mapped", "0123456789"));
  {
    const formats::FileMap map(file);
    CHECK(static_cast<char>(map.data()[9]) == '9');
    map.data()[0] = std::byte{'x'};
  }
  char first = 0;
  file.read_at(0, &first, 1);
  CHECK(first == '0');
  CHECK_NOTHROW(file.require_unchanged());
  fs::resize_file("mapped", 2);
  CHECK_THROWS_AS(formats::FileMap(file), formats::FileError);
}

TEST_CASE("adjacent rows are read together") {
  std::vector<std::int64_t> runs;  // at, first and count of each
  const std::vector<std::int64_t> rows = {4, 5, 6, 2, 2, 3, 9, 8};
  formats::for_each_run(rows, [&](std::size_t at, std::int64_t first, std::int64_t count) {
    runs.insert(runs.end(), {static_cast<std::int64_t>(at), first, count});
  });
  CHECK(runs == std::vector<std::int64_t>{0, 4, 3, 3, 2, 1, 4, 2, 2, 6, 9, 1, 7, 8, 1});
  formats::for_each_run({}, [](std::size_t, std::int64_t, std::int64_t) { FAIL("there is none"); });
}

TEST_CASE("rows are in the requested order") {
  const formats::FixedFile file(write("rows", "##aabbccddee"));
  const formats::StoredRows stored{.row = {.type = at::kByte, .shape = {2}}, .rows = 5, .offset = 2};
  const std::vector<std::int64_t> rows = {3, 4, 0, 0};
  const auto read = formats::read_rows(file, stored, rows);
  CHECK(read.sizes() == at::IntArrayRef({4, 2}));
  CHECK(std::string(static_cast<const char*>(read.const_data_ptr()), 8) == "ddeeaaaa");
}

TEST_CASE("sizes that overflow are detected") {
  CHECK(formats::byte_count({.type = at::kFloat, .shape = {2, 3}}) == 24);
  CHECK(formats::byte_count({.type = at::kFloat, .shape = {}}) == 4);
  CHECK(formats::byte_count({.type = at::kFloat, .shape = {std::int64_t{1} << 62, 0}}) == 0);
  CHECK_FALSE(formats::byte_count({.type = at::kFloat, .shape = {std::int64_t{1} << 62}}).has_value());
  CHECK_FALSE(
      formats::byte_count({.type = at::kFloat, .shape = {std::int64_t{1} << 40, std::int64_t{1} << 40}}).has_value());
  CHECK_FALSE(formats::byte_count({.type = at::kFloat, .shape = {2, -1}}).has_value());
}

namespace {

/// The process's open descriptors.
std::ptrdiff_t open_descriptors() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

std::string content_of(const formats::FixedFile& file) {
  std::string content(file.bytes(), '\0');
  file.read_at(0, content.data(), content.size());
  return content;
}

}  // namespace

TEST_CASE("a pool keeps few of its files open, and reads all of them") {
  const auto before = open_descriptors();
  formats::FilePool pool(3);
  const auto name = [](std::size_t number) { return "pooled" + std::to_string(number); };
  for (std::size_t i = 0; i < 10; ++i) CHECK(pool.add(write(name(i), "content " + std::to_string(i))) == i);
  for (const std::size_t number : {0, 9, 5, 5, 0, 1, 2, 3}) {
    CHECK(content_of(*pool.get(number)) == "content " + std::to_string(number));
    CHECK(open_descriptors() - before <= 3);
  }
  CHECK_NOTHROW(pool.require_unchanged());
  const auto held = pool.get(4);
  for (const std::size_t other : {6, 7, 8}) pool.get(other);
  CHECK(content_of(*held) == "content 4");

  write(name(0), "another");
  CHECK_THROWS_WITH(pool.get(0), ContainsSubstring("pooled0") && ContainsSubstring("was changed while it was in use"));
  const auto times = fs::last_write_time(name(1));  // another file of the same size and time
  fs::rename(write("other", "CONTENT 1"), name(1));
  fs::last_write_time(name(1), times);
  CHECK_THROWS_AS(pool.require_unchanged(), formats::FileError);
}
