#pragma once

#include <malloc.h>
#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <string>

/// What work costs in memory. For a program of its own: what others leave behind hides it.
namespace hortator::test {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

/// A line of what Linux says of this process, in bytes.
inline std::int64_t memory_status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::int64_t kib = 0;
    if (word == key && file >> kib) return kib * 1024;
  }
  return 0;
}

/// How much more memory than before `work` held at its worst.
template <typename Work>
std::int64_t extra_memory(const Work& work) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  const auto before = memory_status("VmRSS:");
  work();
  return memory_status("VmHWM:") - before;
}

/// While it lives this process can take `more` bytes of memory of its own, and no more.
class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t more) {
    getrlimit(RLIMIT_DATA, &before_);
    const auto held = static_cast<rlim_t>(memory_status("VmData:"));
    const rlimit limit = {.rlim_cur = held + more, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_DATA, &limit);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_DATA, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace hortator::test
