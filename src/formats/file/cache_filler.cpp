#include "formats/file/cache_filler.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace hortator::formats {

#ifdef SPLICE_F_MOVE
// A pipe holds pages of the cache without copying them, and the null device releases them.
CacheFiller::CacheFiller() noexcept {
  constexpr int pipe_bytes = 1 << 20;
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  pipe_out_ = ends[0];
  pipe_in_ = ends[1];
  ::fcntl(pipe_in_, F_SETPIPE_SZ, pipe_bytes);  // beyond the user's limit it keeps its smaller size
  null_device_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
}

void CacheFiller::bring(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept {
  if (null_device_ < 0) return;
  auto next = static_cast<loff_t>(offset);
  while (bytes > 0) {
    auto held = ::splice(descriptor, &next, pipe_in_, nullptr, bytes, SPLICE_F_MOVE);
    if (held <= 0) return;
    bytes -= static_cast<std::size_t>(held);
    while (held > 0) {
      const auto released =
          ::splice(pipe_out_, nullptr, null_device_, nullptr, static_cast<std::size_t>(held), SPLICE_F_MOVE);
      if (released < 0 && errno == EINTR) continue;
      if (released <= 0) return give_up();
      held -= released;
    }
  }
}

// Bytes that stay in the pipe would block the next call forever.
void CacheFiller::give_up() noexcept {
  ::close(null_device_);
  null_device_ = -1;
}
#else
CacheFiller::CacheFiller() noexcept = default;
void CacheFiller::bring(int, std::uint64_t, std::size_t) noexcept {}
#endif

CacheFiller::~CacheFiller() {
  for (const int descriptor : {pipe_out_, pipe_in_, null_device_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

}  // namespace hortator::formats
