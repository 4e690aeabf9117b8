#include "base/stream_copy.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace hortator::base {

#if defined(__x86_64__)
void stream_copy(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t line = 64;
  constexpr std::size_t ahead = 1024;
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
  for (; bytes >= line; target += line, source += line, bytes -= line) {
    _mm_prefetch(source + ahead, _MM_HINT_NTA);
    for (std::size_t i = 0; i < line; i += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i)));
    }
  }
  _mm_sfence();
  std::memcpy(target, source, bytes);
}
#else
void stream_copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
#endif

}  // namespace hortator::base
