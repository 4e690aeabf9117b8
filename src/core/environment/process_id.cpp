#include "core/environment/process_id.hpp"

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

// The start time in ticks; empty if there is no such process, or it has ended and its parent has not yet noticed.
std::string start_of(const std::string& number) {
  const auto stat = read_whole("/proc/" + number + "/stat").value_or("");
  const auto name_end = stat.rfind(')');  // the name may contain any characters
  if (name_end == std::string::npos) return "";
  const auto fields = text::split(std::string_view(stat).substr(name_end + 1), ' ');  // from the state, at 1
  const bool is_dead = fields.size() < 21 || fields[1] == "Z" || fields[1] == "X";
  return is_dead ? "" : fields[20];
}

}  // namespace

std::string process_id() {
  const auto number = std::to_string(getpid());
  const auto here = scope();
  const auto start = start_of(number);
  return here.empty() || start.empty() ? "" : text::concat(here, ' ', number, ' ', start);
}

bool has_ended(const std::string& process_id) {
  const auto parts = text::split(process_id, ' ');
  if (parts.size() != 4 || parts[0] + ' ' + parts[1] != scope()) return false;
  return start_of(parts[2]) != parts[3];
}

}  // namespace hortator::core
