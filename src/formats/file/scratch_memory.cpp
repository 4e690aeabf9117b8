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

namespace hortator::formats {
namespace {

/// File systems that write each change to a new block: the space reserved for a file does not hold its changes.
struct CopyOnWrite {
  std::uint32_t number;
  const char* name;
};
constexpr std::array<CopyOnWrite, 4> copy_on_write = {
    {{0x9123683E, "btrfs"}, {0x2FC12FC1, "ZFS"}, {0xCA451A4E, "bcachefs"}, {0x3434, "NILFS2"}}};

bool set_in_place(const RawFile& file) {
  int flags = 0;
  if (::ioctl(file.descriptor(), FS_IOC_GETFLAGS, &flags) != 0) return false;
  flags |= FS_NOCOW_FL;
  return ::ioctl(file.descriptor(), FS_IOC_SETFLAGS, &flags) == 0;
}

// Call while the file is empty. Throws FileError if the file system cannot write in place.
void require_in_place(const RawFile& file, const std::filesystem::path& folder) {
  struct statfs facts {};
  if (::fstatfs(file.descriptor(), &facts) != 0)
    throw_system_error(text::concat("detect the file system of ", folder), errno);
  const auto* found = std::ranges::find_if(
      copy_on_write, [&](const CopyOnWrite& one) { return one.number == static_cast<std::uint32_t>(facts.f_type); });
  if (found == copy_on_write.end() || set_in_place(file)) return;
  throw FileError({.what = text::concat("Memory cannot be kept in ", folder, ": it is on ", found->name),
                   .why = "it writes each change to a new block, and a full disk would then kill the process",
                   .hint = "choose a folder on another file system, such as ext4, XFS or Lustre"});
}

}  // namespace

// The map keeps the file after its descriptor is closed.
ScratchMemory::ScratchMemory(const std::filesystem::path& folder, std::size_t bytes) : bytes_(bytes) {
  const auto file = RawFile::create_unnamed(folder);
  require_in_place(file, folder);
  file.occupy(bytes);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  if (data == MAP_FAILED) throw_system_error(text::concat("map a file in ", folder, " into memory"), errno);
  data_ = static_cast<std::byte*>(data);
}

ScratchMemory::~ScratchMemory() { ::munmap(data_, bytes_); }

}  // namespace hortator::formats
