#include "machine/memory/stream_copy.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace hortator::machine {

#if defined(__x86_64__)
namespace {

constexpr std::size_t line = 64;
constexpr std::size_t page = 4096;
constexpr std::size_t pages_at_once = 4;

// `to` must be aligned to a cache line.
void stream_line(char* to, const char* from) {
  for (std::size_t i = 0; i < line; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
}

// Copies a line of each page in turn: the processor prefetches in all pages, and a single page would not saturate
// memory.
void stream_pages(char* to, const char* from) {
  for (std::size_t begin = 0; begin < page; begin += line) {
    for (std::size_t i = 0; i < pages_at_once; ++i) stream_line(to + i * page + begin, from + i * page + begin);
  }
}

}  // namespace

void stream_copy(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t at_once = pages_at_once * page;
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  const auto before = (line - reinterpret_cast<std::uintptr_t>(target) % line) % line;
  if (bytes < before + line) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(target, source, before);
  target += before;
  source += before;
  bytes -= before;
  for (; bytes >= at_once; target += at_once, source += at_once, bytes -= at_once) stream_pages(target, source);
  for (; bytes >= line; target += line, source += line, bytes -= line) stream_line(target, source);
  _mm_sfence();
  std::memcpy(target, source, bytes);
}
#else
void stream_copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
#endif

}  // namespace hortator::machine
