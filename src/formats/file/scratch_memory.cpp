#include "formats/file/scratch_memory.hpp"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/file/system_error.hpp"

namespace hortator::formats {
namespace {

/// File systems that write each change to a new place: room that was taken for a file is not room for its changes.
struct CopyOnWrite {
  std::uint32_t number;
  const char* name;
};
constexpr std::array<CopyOnWrite, 4> copying = {
    {{0x9123683E, "btrfs"}, {0x2FC12FC1, "ZFS"}, {0xCA451A4E, "bcachefs"}, {0x3434, "NILFS2"}}};

bool writes_in_place_when_asked(const RawFile& file) {
  int flags = 0;
  if (::ioctl(file.descriptor(), FS_IOC_GETFLAGS, &flags) != 0) return false;
  flags |= FS_NOCOW_FL;
  return ::ioctl(file.descriptor(), FS_IOC_SETFLAGS, &flags) == 0;
}

// Of files that are still empty.
void keep_in_place(const RawFile& file, const std::filesystem::path& folder) {
  struct statfs facts {};
  if (::fstatfs(file.descriptor(), &facts) != 0)
    throw_system_error(text::concat("ask for the file system of ", folder), errno);
  const auto* found = std::find_if(copying.begin(), copying.end(), [&](const CopyOnWrite& one) {
    return one.number == static_cast<std::uint32_t>(facts.f_type);
  });
  if (found == copying.end() || writes_in_place_when_asked(file)) return;
  throw FileError(
      {.what = text::concat("memory cannot be kept in ", folder, ": it is on ", found->name),
       .why = "that writes each change to a new place, and a disk that is full by then would end the process",
       .hint = "choose a folder on another file system, such as ext4, XFS or Lustre"});
}

}  // namespace

// The map keeps the file after its descriptor has gone.
ScratchMemory::ScratchMemory(const std::filesystem::path& folder, std::size_t bytes) : bytes_(bytes) {
  const auto file = RawFile::create_unnamed(folder);
  keep_in_place(file, folder);
  file.occupy(bytes);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  if (data == MAP_FAILED) throw_system_error(text::concat("map a file in ", folder, " into memory"), errno);
  data_ = static_cast<std::byte*>(data);
}

ScratchMemory::~ScratchMemory() { ::munmap(data_, bytes_); }

}  // namespace hortator::formats
