#include "tools/launch/machine.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

// More CPUs than any current machine has; the kernel refuses a set that is smaller than its own.
constexpr int max_cpus = 16384;

class CpuMask {
 public:
  CpuMask() : set_(CPU_ALLOC(max_cpus)) { CPU_ZERO_S(bytes(), set_); }
  ~CpuMask() { CPU_FREE(set_); }
  CpuMask(const CpuMask&) = delete;
  CpuMask& operator=(const CpuMask&) = delete;

  static std::size_t bytes() { return CPU_ALLOC_SIZE(max_cpus); }
  cpu_set_t* get() { return set_; }
  bool contains(int cpu) const { return CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes(), set_); }
  int count() const { return CPU_COUNT_S(bytes(), set_); }
  void add_all() {
    for (int cpu = 0; cpu < max_cpus; ++cpu) CPU_SET_S(static_cast<std::size_t>(cpu), bytes(), set_);
  }

 private:
  cpu_set_t* set_;
};

void read_current(CpuMask& mask) { sched_getaffinity(0, CpuMask::bytes(), mask.get()); }

// The value of a line "name<separator>value".
std::string field(const std::string& file, const std::string& name, char separator) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto end = line.find(separator);
    if (end == std::string::npos || line.substr(0, line.find_last_not_of(" \t", end - 1) + 1) != name) continue;
    const auto begin = line.find_first_not_of(" \t\"", end + 1);
    return begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of('"') + 1 - begin);
  }
  return "";
}

std::string siblings(int cpu) {
  std::string list;
  std::getline(std::ifstream(text::concat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list")), list);
  return list.empty() ? std::to_string(cpu) : list;
}

}  // namespace

std::string cpu_list() { return field("/proc/self/status", "Cpus_allowed_list", ':'); }

int cpu_count() {
  CpuMask mask;
  read_current(mask);
  return mask.count();
}

int core_count() {
  CpuMask mask;
  read_current(mask);
  std::set<std::string> cores;
  for (int cpu = 0; cpu < max_cpus; ++cpu) {
    if (mask.contains(cpu)) cores.insert(siblings(cpu));
  }
  return static_cast<int>(cores.size());
}

bool is_confined() {
  int possible = 0;
  // On a separate thread, since finding the limit means asking for all CPUs.
  std::thread([&possible] {
    CpuMask mask;
    mask.add_all();
    sched_setaffinity(0, CpuMask::bytes(), mask.get());
    CpuMask granted;
    read_current(granted);
    possible = granted.count();
  }).join();
  return cpu_count() < possible;
}

std::string cpu_model() { return field("/proc/cpuinfo", "model name", ':'); }

std::uint64_t memory_bytes() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string nvidia_driver() {
  std::string line;
  std::getline(std::ifstream("/proc/driver/nvidia/version"), line);
  return line;
}

std::string operating_system() {
  utsname kernel{};
  uname(&kernel);
  const auto name = field("/etc/os-release", "PRETTY_NAME", '=');
  return text::concat(name, name.empty() ? "" : ", ", kernel.sysname, ' ', kernel.release, ' ', kernel.machine);
}

}  // namespace hortator::tools
