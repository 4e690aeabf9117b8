#include "io/scratch_memory.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "base/text.hpp"
#include "io/raw_file.hpp"
#include "io/system_error.hpp"

namespace hortator::io {

// The map keeps the file after its descriptor has gone.
ScratchMemory::ScratchMemory(const std::filesystem::path& folder, std::size_t bytes) : bytes_(bytes) {
  const auto file = RawFile::create_unnamed(folder);
  file.occupy(bytes);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  if (data == MAP_FAILED) throw_system_error(text::concat("map a file in ", folder, " into memory"), errno);
  data_ = static_cast<std::byte*>(data);
}

ScratchMemory::~ScratchMemory() { ::munmap(data_, bytes_); }

}  // namespace hortator::io
