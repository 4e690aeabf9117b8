#include "formats/file/fixed_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::formats {

FixedFile::FixedFile(std::filesystem::path path)
    : path_(std::move(path)), file_(RawFile::open_for_reading(path_)), found_(version()) {}

FixedFile::FixedFile(std::filesystem::path path, const FileVersion& expected)
    : path_(std::move(path)), file_(RawFile::open_for_reading(path_)), found_(expected) {
  require_unchanged();
}

FixedFile::FileVersion FixedFile::version() const {
  struct stat stat {};
  if (::fstat(file_.descriptor(), &stat) != 0) throw_system_error(text::concat("inspect ", path_), errno);
  if (!S_ISREG(stat.st_mode)) throw FileError({.what = text::concat(path_, " is not a regular file")});
  return {.bytes = static_cast<std::uint64_t>(stat.st_size),
          .changed_seconds = stat.st_mtim.tv_sec,
          .changed_nanoseconds = stat.st_mtim.tv_nsec,
          .inode = static_cast<std::uint64_t>(stat.st_ino)};
}

void FixedFile::read_at(std::uint64_t offset, void* data, std::size_t bytes) const {
  try {
    file_.read_at(static_cast<std::int64_t>(offset), data, bytes);
  } catch (const FileError&) {
    require_unchanged();  // explains more than "it ends too early" if the file was truncated
    throw;
  }
}

void FixedFile::require_unchanged() const {
  const auto now = version();
  if (now == found_) return;
  throw FileError({.what = text::concat(path_, " was changed while it was in use: it had ", found_.bytes,
                                        " bytes when it was opened and has ", now.bytes, " now"),
                   .why = "ranks and epochs would see different data",
                   .hint = "write a new file beside the old one and rename it"});
}

FileMap::FileMap(const FixedFile& file) : bytes_(file.bytes()) {
  file.require_unchanged();
  // MAP_NORESERVE: pages that are never written need no swap space, so a model may be larger than memory and swap.
  void* data = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.descriptor(), 0);
  if (data == MAP_FAILED) throw_system_error(text::concat("map ", file.path(), " into memory"), errno);
  data_ = static_cast<std::byte*>(data);
}

FileMap::~FileMap() { ::munmap(data_, bytes_); }

}  // namespace hortator::formats
