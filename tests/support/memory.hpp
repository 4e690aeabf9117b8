#pragma once

#include <malloc.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
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

/// The flags that /proc/self/smaps gives the mapping around an address, each between blanks; "" if it is not mapped.
inline std::string mapping_flags(const void* address) {
  std::ifstream smaps("/proc/self/smaps");
  bool is_around = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &begin, &end) == 2)
      is_around = begin <= reinterpret_cast<std::uintptr_t>(address) && reinterpret_cast<std::uintptr_t>(address) < end;
    if (is_around && line.starts_with("VmFlags:")) return line + ' ';
  }
  return "";
}

/// Whether the system puts memory on huge pages where a program asks for it.
inline bool has_huge_pages() { return std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").good(); }

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
