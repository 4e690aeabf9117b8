#include "machine/memory/huge_pages.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <numeric>

#include "machine/memory/system_memory.hpp"
#include "machine/shapes/counted_memory.hpp"

namespace hortator::machine {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

struct Pages {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

/// Fresh pages that begin where a huge page can; none if the system refuses them.
Pages map_pages(std::size_t bytes) {
  auto* const mapped = map_memory(bytes + huge_page);
  if (mapped == nullptr) return {};
  const auto before = (huge_page - reinterpret_cast<std::uintptr_t>(mapped) % huge_page) % huge_page;
  if (before > 0) unmap_memory(mapped, before);
  unmap_memory(mapped + before + bytes, huge_page - before);
  return {.begin = mapped + before, .bytes = bytes};
}

at::DataPtr owner_of(std::byte* begin, std::size_t bytes) {
  const auto give_back = [](void* context) {
    const auto* const pages = static_cast<const Pages*>(context);
    forget_memory(pages->begin);
    unmap_memory(pages->begin, pages->bytes);
    delete pages;
  };
  note_memory(begin, bytes, "");
  return {begin, new Pages{.begin = begin, .bytes = bytes}, give_back, at::Device(at::kCPU)};
}

}  // namespace

std::vector<at::DataPtr> memory_on_huge_pages(const std::vector<std::size_t>& sizes) {
  const auto add = [](std::size_t sum, std::size_t bytes) { return sum + whole_pages(bytes); };
  const auto pages = map_pages(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}, add));
  if (pages.begin == nullptr) return {};
#ifdef MADV_HUGEPAGE
  ::madvise(pages.begin, pages.bytes, MADV_HUGEPAGE);  // before anything is written there; a refusal changes nothing
#endif
  std::vector<at::DataPtr> pieces;
  auto* next = pages.begin;
  for (const auto bytes : sizes) {
    pieces.push_back(owner_of(next, whole_pages(bytes)));
    next += whole_pages(bytes);
  }
  return pieces;
}

}  // namespace hortator::machine
