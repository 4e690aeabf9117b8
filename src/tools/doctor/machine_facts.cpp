#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "tools/doctor/machine.hpp"
#include "tools/launch/machine.hpp"

namespace hortator::tools::doctor {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& file) { return core::read_whole(file).value_or(""); }

std::optional<std::uint64_t> limit(__rlimit_resource what) {
  rlimit values{};
  if (getrlimit(what, &values) != 0 || values.rlim_cur == RLIM_INFINITY) return {};
  return values.rlim_cur;
}

std::optional<std::uint64_t> free_shared_memory() {
  struct statvfs status {};
  if (statvfs("/dev/shm", &status) != 0) return {};
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

// logind.conf, then the files that sites add; the last value applies.
std::string remove_ipc() {
  const fs::path folder = "/etc/systemd";
  auto settings = content(folder / "logind.conf");
  std::vector<fs::path> added;
  std::error_code error;
  for (fs::directory_iterator entry(folder / "logind.conf.d", error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".conf") added.push_back(entry->path());
  }
  std::sort(added.begin(), added.end());
  for (const auto& file : added) settings.append("\n").append(content(file));
  return parse_remove_ipc(settings);
}

// The tightest limits of this process's control group and its ancestors.
ControlGroup own_group() {
  ControlGroup group;
  fs::path name;
  for (const auto& line : text::split(content("/proc/self/cgroup"), '\n')) {
    if (line.starts_with("0::")) name = line.substr(3);
  }
  for (; !name.empty(); name = name.parent_path()) {
    const auto folder = fs::path("/sys/fs/cgroup") / name.relative_path();
    const auto lines = [&](const char* file) { return text::first_line(content(folder / file)); };
    long long bytes = 0;
    if (text::parse_integer(lines("memory.max"), bytes))
      group.memory = std::min(group.memory.value_or(UINT64_MAX), static_cast<std::uint64_t>(bytes));
    if (const auto cpus = parse_cpu_max(lines("cpu.max"))) group.cpus = std::min(group.cpus.value_or(*cpus), *cpus);
    if (name == name.root_path()) break;
  }
  return group;
}

std::string kernel() {
  utsname names{};
  uname(&names);
  return names.release;
}

}  // namespace

std::optional<double> parse_cpu_max(const std::string& line) {
  const auto fields = text::split(line, ' ');
  long long quota = 0;
  long long period = 0;
  if (fields.size() != 2 || !text::parse_integer(fields[0], quota) || !text::parse_integer(fields[1], period))
    return {};
  if (period <= 0) return {};
  return static_cast<double>(quota) / static_cast<double>(period);
}

std::string parse_remove_ipc(const std::string& logind_conf) {
  constexpr std::string_view key = "RemoveIPC=";
  std::string value;
  for (const auto& line : text::split(logind_conf, '\n')) {
    const auto begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos || !std::string_view(line).substr(begin).starts_with(key)) continue;
    value = line.substr(begin + key.size());
    value.erase(value.find_last_not_of(" \t\r") + 1);
  }
  return value;
}

MachineFacts inspect_machine(int local_ranks) {
  return {.kernel = kernel(),
          .local_ranks = local_ranks,
          .free_shared_memory = free_shared_memory(),
          .limits = {.open_files = limit(RLIMIT_NOFILE),
                     .processes = limit(RLIMIT_NPROC),
                     .stack = limit(RLIMIT_STACK),
                     .address_space = limit(RLIMIT_AS)},
          .has_logind = fs::exists("/run/systemd/system"),
          .remove_ipc = remove_ipc(),
          .group = own_group(),
          .memory = memory_bytes(),
          .cpus = cpu_count()};
}

}  // namespace hortator::tools::doctor
