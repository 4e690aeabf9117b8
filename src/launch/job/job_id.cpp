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

// "f2vWXyz", or with a first character that is not in ASCII: ids in base 58.
std::optional<std::string> flux_id(std::string_view line) {
  constexpr std::string_view digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  constexpr std::string_view hooked_f = "\xc6\x92";
  auto rest = line;
  if (rest.starts_with(hooked_f)) {
    rest.remove_prefix(hooked_f.size());
  } else if (rest.starts_with('f')) {
    rest.remove_prefix(1);
  } else {
    return {};
  }
  const bool is_id = !rest.empty() && rest.find_first_not_of(digits) == std::string_view::npos;
  return is_id ? std::optional(std::string(line)) : std::nullopt;
}

// "Job <41> is submitted to queue <normal>."
std::optional<std::string> lsf_id(std::string_view line) {
  constexpr std::string_view begin = "Job <";
  if (!line.starts_with(begin) || line.find("> is submitted") == std::string_view::npos) return {};
  const auto number = line.substr(begin.size(), line.find('>') - begin.size());
  return !number.empty() && std::ranges::all_of(number, is_decimal) ? std::optional(std::string(number)) : std::nullopt;
}

// With -terse: "41", and "41.1-4:1" for an array.
std::optional<std::string> grid_engine_id(std::string_view line) {
  const auto number = line.substr(0, line.find('.'));
  const bool is_id = !number.empty() && std::ranges::all_of(number, is_decimal) &&
                     line.find_first_not_of("0123456789.-:") == std::string_view::npos;
  return is_id ? std::optional(std::string(number)) : std::nullopt;
}

std::optional<std::string> id_in(Scheduler scheduler, const std::string& line) {
  switch (scheduler) {
    case Scheduler::slurm:
      return is_slurm_id(line) ? std::optional(text::split(line, ';').front()) : std::nullopt;
    case Scheduler::pbs:
      return is_pbs_id(line) ? std::optional(line) : std::nullopt;
    case Scheduler::flux:
      return flux_id(line);
    case Scheduler::lsf:
      return lsf_id(line);
    case Scheduler::grid_engine:
      return grid_engine_id(line);
  }
  return {};
}

}  // namespace

std::optional<std::string> job_id(Scheduler scheduler, std::string_view output) {
  auto lines = text::split(output, '\n');
  std::reverse(lines.begin(), lines.end());
  for (const auto& raw : lines) {
    if (auto id = id_in(scheduler, raw.substr(0, raw.find_last_not_of(" \t\r") + 1))) return id;
  }
  return std::nullopt;
}

}  // namespace hortator::launching
