#include "formats/file/file_map.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "core/text/text.hpp"
#include "formats/file/system_error.hpp"

namespace hortator::formats {

FileMap::FileMap(const FixedFile& file) : bytes_(file.bytes()) {
  file.require_unchanged();
  // MAP_NORESERVE: pages that nobody writes to need no swap space, so a model may be larger than memory and swap.
  void* data = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.descriptor(), 0);
  if (data == MAP_FAILED) throw_system_error(text::concat("map ", file.path(), " into memory"), errno);
  data_ = static_cast<std::byte*>(data);
}

FileMap::~FileMap() { ::munmap(data_, bytes_); }

}  // namespace hortator::formats
