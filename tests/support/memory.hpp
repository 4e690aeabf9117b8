#pragma once

#include <malloc.h>
#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <string>

/// Measures the memory that work takes. To be used in a separate program: free memory left by other tests would hide
/// it.
namespace hortator::test {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

/// Returns a value of /proc/self/status, in bytes.
inline std::int64_t memory_status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string field; file >> field;) {
    std::int64_t kib = 0;
    if (field == key && file >> kib) return kib * 1024;
  }
  return 0;
}

/// Returns the peak of the memory during `work`, minus the memory before.
template <typename Work>
std::int64_t extra_memory(const Work& work) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
  const auto before = memory_status("VmRSS:");
  work();
  return memory_status("VmHWM:") - before;
}

/// Limits this process to `more` bytes of additional private memory, until the end of the scope.
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
