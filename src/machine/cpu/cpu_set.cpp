#include "machine/cpu/cpu_set.hpp"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <hortator/error.hpp>
#include <memory>
#include <optional>

#include "core/text/text.hpp"

namespace hortator::machine {
namespace {

struct FreeMask {
  void operator()(cpu_set_t* mask) const { CPU_FREE(mask); }
};

// The kernel refuses masks that are too short for its CPUs and does not report their number, so the mask is enlarged
// until it fits.
constexpr int initial_cpus = 1024;
constexpr int max_cpus = 1 << 20;

int as_number(const std::string& text) {
  long long value = -1;
  if (!text::parse_integer(text, value)) throw Error({.what = "Expected a CPU number, got " + text::quote(text)});
  return static_cast<int>(value);
}

using Mask = std::unique_ptr<cpu_set_t, FreeMask>;

// The CPUs of a thread (0: this one). Nothing on failure, with errno set.
std::optional<CpuSet> cpus_of_thread(pid_t thread) {
  for (int cpus = initial_cpus; cpus <= max_cpus; cpus *= 2) {
    const Mask mask(CPU_ALLOC(cpus));
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    CPU_ZERO_S(bytes, mask.get());
    if (sched_getaffinity(thread, bytes, mask.get()) == 0) {
      CpuSet set;
      for (int cpu = 0; cpu < cpus; ++cpu) {
        if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, mask.get())) set.push_back(cpu);
      }
      return set;
    }
    if (errno != EINVAL) break;
  }
  return std::nullopt;
}

bool bind_thread(pid_t thread, const CpuSet& cpus) {
  const int mask_cpus = cpus.back() + 1;
  const Mask mask(CPU_ALLOC(mask_cpus));
  const std::size_t bytes = CPU_ALLOC_SIZE(mask_cpus);
  CPU_ZERO_S(bytes, mask.get());
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, mask.get());
  return sched_setaffinity(thread, bytes, mask.get()) == 0;
}

}  // namespace

CpuSet own_cpu_set() {
  if (auto set = cpus_of_thread(0)) return *std::move(set);
  throw Error({.what = text::concat("Cannot read the CPUs of this process: ", std::strerror(errno)),
               .why = "the number of threads depends on them"});
}

std::optional<CpuSet> cpu_set_of(int process) { return cpus_of_thread(process); }

// MPI and LibTorch have started threads by now. Threads that are bound to other CPUs stay there.
bool bind_own_threads(const CpuSet& before, const CpuSet& cpus) {
  if (!bind_thread(0, cpus)) return false;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/task", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto thread = static_cast<pid_t>(as_number(entry->path().filename().string()));
    if (cpus_of_thread(thread) == before) bind_thread(thread, cpus);
  }
  return true;
}

std::string to_ranges(const CpuSet& set) {
  std::vector<std::string> ranges;
  for (std::size_t begin = 0, end = 0; begin < set.size(); begin = end) {
    for (end = begin + 1; end < set.size() && set[end] == set[end - 1] + 1;) ++end;
    const auto first = std::to_string(set[begin]);
    ranges.push_back(end == begin + 1 ? first : first + "-" + std::to_string(set[end - 1]));
  }
  return text::join(ranges, ",");
}

CpuSet from_ranges(std::string_view text) {
  CpuSet set;
  if (text.empty()) return set;
  for (const auto& range : text::split(text, ',')) {
    const auto ends = text::split(range, '-');
    for (int cpu = as_number(ends.front()); cpu <= as_number(ends.back()); ++cpu) set.push_back(cpu);
  }
  return set;
}

}  // namespace hortator::machine
