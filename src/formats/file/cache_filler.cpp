#include "formats/file/cache_filler.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace hortator::formats {

#ifdef SPLICE_F_MOVE
// A pipe holds pages of the cache without copying them, and the null device lets go of them.
CacheFiller::CacheFiller() noexcept {
  constexpr int pipe_bytes = 1 << 20;
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  from_ = ends[0];
  to_ = ends[1];
  ::fcntl(to_, F_SETPIPE_SZ, pipe_bytes);  // where that is too much, it stays smaller
  nowhere_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
}

void CacheFiller::bring(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept {
  if (nowhere_ < 0) return;
  auto next = static_cast<loff_t>(offset);
  while (bytes > 0) {
    auto held = ::splice(descriptor, &next, to_, nullptr, bytes, SPLICE_F_MOVE);
    if (held <= 0) return;
    bytes -= static_cast<std::size_t>(held);
    while (held > 0) {
      const auto gone = ::splice(from_, nullptr, nowhere_, nullptr, static_cast<std::size_t>(held), SPLICE_F_MOVE);
      if (gone < 0 && errno == EINTR) continue;
      if (gone <= 0) return give_up();
      held -= gone;
    }
  }
}

// What stays in the pipe would let the next call wait for ever.
void CacheFiller::give_up() noexcept {
  ::close(nowhere_);
  nowhere_ = -1;
}
#else
CacheFiller::CacheFiller() noexcept = default;
void CacheFiller::bring(int, std::uint64_t, std::size_t) noexcept {}
#endif

CacheFiller::~CacheFiller() {
  for (const int descriptor : {from_, to_, nowhere_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

}  // namespace hortator::formats
