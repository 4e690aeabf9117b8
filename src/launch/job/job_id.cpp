#include "launch/job/job_id.hpp"

#include <algorithm>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

// "41;cluster"
bool is_slurm_id(std::string_view line) {
  const auto number = line.substr(0, line.find(';'));
  return !number.empty() && std::all_of(number.begin(), number.end(), is_decimal);
}

// "41.server", "41[].server", "41"
bool is_pbs_id(std::string_view line) {
  const auto end = std::min(line.find_first_not_of("0123456789"), line.size());
  auto rest = line.substr(end);
  if (rest.starts_with("[]")) rest.remove_prefix(2);
  const bool has_server =
      rest.starts_with('.') && rest.size() > 1 && rest.find_first_of(" \t:") == std::string_view::npos;
  return end > 0 && (rest.empty() || has_server);
}

}  // namespace

std::optional<std::string> job_id(Scheduler scheduler, std::string_view output) {
  auto lines = text::split(output, '\n');
  std::reverse(lines.begin(), lines.end());
  for (const auto& raw : lines) {
    const auto line = raw.substr(0, raw.find_last_not_of(" \t\r") + 1);
    if (scheduler == Scheduler::slurm && is_slurm_id(line)) return text::split(line, ';').front();
    if (scheduler == Scheduler::pbs && is_pbs_id(line)) return line;
  }
  return std::nullopt;
}

}  // namespace hortator::launching
