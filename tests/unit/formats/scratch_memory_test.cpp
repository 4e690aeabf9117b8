#include "formats/file/scratch_memory.hpp"

#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"
#include "support/catch.hpp"
#include "unit/checkpoint/file_limit.hpp"

using namespace hortator;

namespace {

// The simulated file system.
bool promises_room = true;
std::optional<long> is_called;  // the reported number; empty: the real one
bool writes_in_place = false;   // on request

std::filesystem::path scratch_folder() {
  const std::filesystem::path path = "scratch_memory";
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

/// A field in kB of the mapping that contains `inside`.
long mapped(const std::byte* inside, const std::string& key) {
  std::ifstream maps("/proc/self/smaps");
  bool is_it = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      is_it = begin <= reinterpret_cast<unsigned long>(inside) && reinterpret_cast<unsigned long>(inside) < end;
    if (is_it && line.starts_with(key)) return std::stol(line.substr(key.size()));
  }
  return -1;
}

}  // namespace

// Replaces the function of the C library.
extern "C" int fallocate(int descriptor, int mode, off_t offset, off_t bytes) {
  if (promises_room) return static_cast<int>(::syscall(SYS_fallocate, descriptor, mode, offset, bytes));
  errno = EOPNOTSUPP;
  return -1;
}

extern "C" int fstatfs(int descriptor, struct statfs* facts) noexcept {
  const auto code = static_cast<int>(::syscall(SYS_fstatfs, descriptor, facts));
  if (is_called) facts->f_type = *is_called;
  return code;
}

extern "C" int ioctl(int descriptor, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  auto* argument = va_arg(arguments, void*);
  va_end(arguments);
  const bool about_flags = request == FS_IOC_GETFLAGS || request == FS_IOC_SETFLAGS;
  if (!is_called || !about_flags) return static_cast<int>(::syscall(SYS_ioctl, descriptor, request, argument));
  if (!writes_in_place) {
    errno = ENOTTY;
    return -1;
  }
  if (request == FS_IOC_SETFLAGS) CHECK((*static_cast<int*>(argument) & FS_NOCOW_FL) != 0);
  return 0;
}

TEST_CASE("scratch memory is zero at first, keeps what is written, and leaves no file") {
  const auto folder = scratch_folder();
  constexpr std::size_t bytes = 3'000'001;
  {
    const formats::ScratchMemory memory(folder, bytes);
    CHECK(std::all_of(memory.data(), memory.data() + bytes, [](std::byte one) { return one == std::byte{0}; }));
    std::fill(memory.data(), memory.data() + bytes, std::byte{7});
    CHECK(memory.data()[bytes - 1] == std::byte{7});
    CHECK(std::filesystem::is_empty(folder));
    CHECK(mapped(memory.data(), "Anonymous:") == 0);  // none of it needs swap space
  }
  CHECK(std::filesystem::is_empty(folder));
}

TEST_CASE("a full disk is an error when the memory is created") {
  const auto folder = scratch_folder();
  const testing::FileLimit limit(1 << 16);
  for (const bool promises : {true, false}) {
    INFO("promises " << promises);
    promises_room = promises;
    CHECK_THROWS_AS(formats::ScratchMemory(folder, 1 << 20), formats::FileError);
    CHECK_NOTHROW(formats::ScratchMemory(folder, 1 << 16));
    CHECK(std::filesystem::is_empty(folder));
  }
  promises_room = true;
  CHECK_THROWS_WITH(formats::ScratchMemory("no/such/folder", 1), ContainsSubstring("no/such/folder"));
}

TEST_CASE("a copy-on-write file system writes in place or is refused by name") {
  const auto folder = scratch_folder();
  for (const auto& [number, name] : {std::pair(0x9123683EL, "btrfs"), std::pair(0x2FC12FC1L, "ZFS")}) {
    is_called = number;
    writes_in_place = false;
    CHECK_THROWS_WITH(formats::ScratchMemory(folder, 100), ContainsSubstring("scratch_memory") &&
                                                               ContainsSubstring(name) &&
                                                               ContainsSubstring("another file system"));
    writes_in_place = true;
    CHECK_NOTHROW(formats::ScratchMemory(folder, 100));
  }
  is_called = 0xEF53;  // ext4, which has no such flag
  writes_in_place = false;
  CHECK_NOTHROW(formats::ScratchMemory(folder, 100));
  is_called.reset();
  CHECK(std::filesystem::is_empty(folder));
}

TEST_CASE("occupied space is on the disk even if the file system cannot reserve it") {
  const auto folder = scratch_folder();
  constexpr std::uint64_t bytes = (1 << 20) + 4096;
  for (const bool promises : {true, false}) {
    INFO("promises " << promises);
    promises_room = promises;
    const auto path = folder / (promises ? "promised" : "written");
    const auto file = formats::RawFile::create(path);
    file.occupy(bytes);
    CHECK(file.bytes() == bytes);
    struct stat facts {};
    REQUIRE(::stat(path.c_str(), &facts) == 0);
    CHECK(static_cast<std::uint64_t>(facts.st_blocks) * 512 >= bytes);
  }
  promises_room = true;
}
