#include "machine/memory/system_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace hortator::machine {
namespace {

std::byte* checked(void* memory) { return memory != MAP_FAILED ? static_cast<std::byte*>(memory) : nullptr; }

}  // namespace

std::size_t whole_pages(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
}

std::byte* map_memory(std::size_t bytes) noexcept {
  return checked(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

std::byte* resize_memory(std::byte* data, std::size_t bytes, std::size_t new_bytes) noexcept {
  return checked(::mremap(data, bytes, new_bytes, MREMAP_MAYMOVE));
}

void unmap_memory(std::byte* data, std::size_t bytes) noexcept { ::munmap(data, bytes); }

}  // namespace hortator::machine
