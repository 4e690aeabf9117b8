#include "formats/file/raw_file.hpp"

#include <array>
#include <chrono>
#include <fstream>
#include <thread>

#include "formats/file/file_error.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("bytes are written and read at offsets") {
  std::ofstream("raw") << "0123456789";
  auto out = formats::RawFile::open_for_writing("raw");
  out.write_at(3, "abc", 3);
  out.write_at(12, "z", 1);
  out.write_at(5, "", 0);
  out.sync();
  out.close();
  auto in = formats::RawFile::open_for_reading("raw");
  CHECK(in.bytes() == 13);
  std::array<char, 4> four{};
  in.read_at(2, four.data(), 4);
  CHECK(std::string(four.data(), 4) == "2abc");
  formats::RawFile moved = std::move(in);
  moved.read_at(6, four.data(), 4);
  CHECK(std::string(four.data(), 4) == "6789");
  CHECK_THROWS_WITH(moved.read_at(10, four.data(), 4), ContainsSubstring("raw") && ContainsSubstring("ends too early"));
  CHECK_NOTHROW(formats::sync_folder("."));
}

TEST_CASE("a file is created once, and resized") {
  std::filesystem::remove("created");
  auto file = formats::RawFile::create("created");
  file.resize(5000);
  CHECK(file.bytes() == 5000);
  file.close();
  CHECK_THROWS_WITH(formats::RawFile::create("created"),
                    ContainsSubstring("Cannot create") && ContainsSubstring("File exists"));
}

TEST_CASE("a file is handed over by a unique name and usable without it") {
  std::filesystem::remove_all("passing");
  std::filesystem::create_directory("passing");
  const auto mine = formats::RawFile::create_to_pass_on("passing");
  CHECK(formats::RawFile::create_to_pass_on("passing").path() != mine.path());
  const auto others = formats::RawFile::open_passed_on(mine.path());
  std::filesystem::remove_all("passing");
  mine.write_at(0, "abcd", 4);
  others.write_at(2, "yz", 2);
  std::array<char, 4> four{};
  mine.read_at(0, four.data(), 4);
  CHECK(std::string(four.data(), 4) == "abyz");
  CHECK_THROWS_WITH(formats::RawFile::open_passed_on(mine.path()), ContainsSubstring("passing"));
  CHECK_THROWS_WITH(formats::RawFile::create_to_pass_on("passing"), ContainsSubstring("create a file in"));
}

TEST_CASE("failures name the file and the system's reason") {
  CHECK_THROWS_WITH(formats::RawFile::open_for_reading("no/such"),
                    ContainsSubstring("no/such") && ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(formats::RawFile::open_for_writing("."), ContainsSubstring("Is a directory"));
  const auto full = formats::RawFile::open_for_writing("/dev/full");
  CHECK_THROWS_WITH(full.write_at(0, "x", 1), ContainsSubstring("No space left") && ContainsSubstring("free space"));
}

TEST_CASE("a variable says how long to wait for files of other nodes") {
  ::unsetenv("HORTATOR_FILE_PATIENCE");
  CHECK(formats::visible_within() == std::chrono::seconds(10));
  ::setenv("HORTATOR_FILE_PATIENCE", "1min", 1);
  CHECK(formats::visible_within() == std::chrono::minutes(1));
  ::setenv("HORTATOR_FILE_PATIENCE", "60", 1);
  CHECK_THROWS_WITH(formats::visible_within(), ContainsSubstring("HORTATOR_FILE_PATIENCE=60 is not a time"));
}

TEST_CASE("opening waits for a late name, and hints have no effect on contents") {
  using namespace std::chrono_literals;
  std::filesystem::remove("later");
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(formats::RawFile::open_for_reading("later", 60ms), formats::FileError);
  CHECK(std::chrono::steady_clock::now() - begin >= 60ms);
  std::thread other([] {
    std::this_thread::sleep_for(50ms);
    std::ofstream("later.part") << "words";
    formats::rename("later.part", "later");
  });
  const auto file = formats::RawFile::open_for_reading("later", 10s);
  other.join();
  file.expect_front_to_back();
  file.start_writing(0, 5);
  file.forget_cached();
  CHECK(formats::read_text("later", 5) == "words");
  CHECK_THROWS_WITH(formats::read_text("later", 4), ContainsSubstring("it has 5 bytes"));
  CHECK_THROWS_WITH(formats::rename("none", "later"), ContainsSubstring("none"));
}
