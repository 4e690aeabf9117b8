#include "core/process.hpp"

#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::core {
namespace {

// Process numbers are unique on one machine until its next boot, and within one PID namespace.
std::string scope() {
  std::error_code ignored;
  const auto boot = text::first_line(read_whole("/proc/sys/kernel/random/boot_id").value_or(""));
  const auto pid_namespace = std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
  return boot.empty() || pid_namespace.empty() ? "" : text::concat(boot, ' ', pid_namespace);
}

}  // namespace

std::optional<ProcessFacts> parse_stat(std::string_view stat) {
  constexpr std::size_t start_field = 19;  // of those after the state, which is the third of all
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= stat.size()) return {};
  const auto fields = text::split(stat.substr(name_end + 2), ' ');
  long long start = 0;
  if (fields.size() <= start_field || !text::parse_integer(fields[start_field], start)) return {};
  return ProcessFacts{.state = fields[0].empty() ? '?' : fields[0][0], .start = static_cast<std::uint64_t>(start)};
}

std::optional<ProcessFacts> process_facts(long pid) {
  return parse_stat(read_whole(text::concat("/proc/", pid, "/stat")).value_or(""));
}

std::string process_id() {
  const auto here = scope();
  const auto facts = process_facts(getpid());
  return here.empty() || !facts ? "" : text::concat(here, ' ', getpid(), ' ', facts->start);
}

bool has_ended(const std::string& process_id) {
  const auto parts = text::split(process_id, ' ');
  long long pid = 0;
  if (parts.size() != 4 || parts[0] + ' ' + parts[1] != scope() || !text::parse_integer(parts[2], pid)) return false;
  const auto facts = process_facts(static_cast<long>(pid));
  return !facts || facts->is_dead() || std::to_string(facts->start) != parts[3];
}

}  // namespace hortator::core
