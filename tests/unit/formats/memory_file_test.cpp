#include "formats/hdf5/memory_file.hpp"

#include <sys/stat.h>

#include "formats/file/raw_file.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("a memory file is copied with its bytes, length and holes") {
  constexpr std::uint64_t far = std::uint64_t{1} << 40;
  formats::MemoryFile memory;
  memory.write_at(10, "first", 5);
  const std::string long_text(100'000, 'x');
  memory.write_at(far - 100, long_text.data(), long_text.size());
  memory.resize(far + 150'000);

  std::filesystem::remove("copied");
  memory.copy_to(formats::RawFile::create("copied"));
  const auto copied = formats::RawFile::open_for_reading("copied");
  CHECK(copied.bytes() == far + 150'000);
  std::string text(long_text.size(), ' ');
  copied.read_at(far - 100, text.data(), text.size());
  CHECK(text == long_text);
  copied.read_at(10, text.data(), 6);
  CHECK(text.substr(0, 6) == std::string("first\0", 6));
  struct stat facts {};
  CHECK(::stat("copied", &facts) == 0);
  CHECK(facts.st_blocks * 512 < (1 << 20));
  std::filesystem::remove("copied");
}

TEST_CASE("reads cross page boundaries, and unwritten bytes are zero") {
  formats::MemoryFile memory;
  const std::string text(40'000, 'y');
  memory.write_at(5'000, text.data(), text.size());
  CHECK(memory.bytes() == 45'000);
  std::string back(50'000, ' ');
  memory.read_at(1'000, back.data(), back.size());
  CHECK(back == std::string(4'000, '\0') + text + std::string(6'000, '\0'));
}

TEST_CASE("copying the metadata keeps what others write into the tensors' range") {
  formats::MemoryFile memory({.data_begin = 20'000, .end = 60'000});
  const std::string text(100'000, 's');
  memory.write_at(0, text.data(), text.size());
  std::filesystem::remove("shared");
  const auto file = formats::RawFile::create("shared");
  const std::string data(40'000, 'd');
  file.write_at(20'000, data.data(), data.size());
  memory.copy_to(file);
  std::string back(100'000, ' ');
  formats::RawFile::open_for_reading("shared").read_at(0, back.data(), back.size());
  CHECK(back == std::string(20'000, 's') + data + std::string(40'000, 's'));
  std::filesystem::remove("shared");
}

TEST_CASE("tensors are contiguous, large ones page-aligned; metadata goes first, then last") {
  using Content = formats::MemoryFile::Content;
  formats::MemoryFile memory({.data_begin = 1000, .end = 4096 + (1 << 20)});
  CHECK(memory.allocate(Content::structure, 100) == 0);
  CHECK(memory.allocate(Content::tensor, 5) == 1000);
  CHECK(memory.allocate(Content::tensor, 8) == 1008);
  CHECK(memory.allocate(Content::structure, 900) == 100);
  CHECK(memory.allocate(Content::tensor, 1 << 20) == 4096);
  CHECK(memory.end_of_allocation() == 4096 + (1 << 20));
  CHECK(memory.allocate(Content::structure, 10) == 4096 + (1 << 20));
  CHECK(memory.allocate(Content::tensor, 8) == 4096 + (1 << 20) + 16);
  memory.set_end_of_allocation(0);
  CHECK(memory.end_of_allocation() == 4096 + (1 << 20));
}
