#include "runtime/ending/deadline.hpp"

#include <cstdio>
#include <ctime>
#include <hortator/error.hpp>
#include <memory>

#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::runtime {
namespace {

using std::chrono::seconds;

std::string_view trimmed(std::string_view text) {
  constexpr auto blank = " \t\r\n";
  const auto begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

/// Parses "12:34:56", "34:56" or "56"; the last field is seconds.
std::optional<seconds> parse_clock(std::string_view text) {
  long long total = 0;
  for (const auto& part : text::split(text, ':')) {
    long long number = 0;
    if (!text::parse_integer(part, number) || number < 0) return {};
    total = total * 60 + number;
  }
  return seconds(total);
}

std::optional<std::string> qstat_field(std::string_view listing, std::string_view name) {
  for (const auto& line : text::split(listing, '\n')) {
    const auto field = trimmed(line);
    const auto equals = field.find(" = ");
    if (equals != std::string_view::npos && field.substr(0, equals) == name)
      return std::string(field.substr(equals + 3));
  }
  return {};
}

/// Parses the local time "Wed Nov 25 03:32:44 2026".
std::optional<Deadline> parse_date(const std::string& text) {
  std::tm date{};
  date.tm_isdst = -1;
  const char* end = strptime(text.c_str(), "%a %b %d %H:%M:%S %Y", &date);
  if (end == nullptr || *end != '\0') return {};
  return Deadline(seconds(std::mktime(&date)));
}

// Accepts a job id for use in a command line, like "1234" or "1234[7].server": nothing that a shell would interpret.
bool is_job_name(std::string_view id) {
  return !id.empty() && id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._[]-") ==
                            std::string_view::npos;
}

std::optional<std::string> job(const core::Variables& variables, const char* name) {
  const auto id = variables(name);
  return id && is_job_name(*id) ? id : std::nullopt;
}

}  // namespace

Ask ask_shell() {
  return [](const std::string& command) -> std::optional<std::string> {
    const auto stream = popen((command + " 2>/dev/null").c_str(), "r");
    if (stream == nullptr) return {};
    std::string answer;
    char buffer[4096];
    while (const auto got = std::fread(buffer, 1, sizeof buffer, stream)) answer.append(buffer, got);
    return pclose(stream) == 0 ? std::optional(answer) : std::nullopt;
  };
}

std::optional<Deadline> known_deadline(const core::Variables& variables) {
  long long at = 0;
  if (const auto asked = variables("HORTATOR_DEADLINE")) {
    if (text::parse_integer(*asked, at) && at > 0) return Deadline(seconds(at));
    throw UsageError({.what = "HORTATOR_DEADLINE is " + text::quote(*asked),
                      .why = "it is the time at which the job ends, in seconds since 1970",
                      .hint = "set it with: export HORTATOR_DEADLINE=$(date +%s -d '+2 hours')"});
  }
  const auto slurm = variables("SLURM_JOB_END_TIME");
  if (slurm && text::parse_integer(*slurm, at) && at > 0) return Deadline(seconds(at));
  return {};
}

std::optional<Deadline> ask_deadline(const core::Variables& variables, const Ask& ask, Deadline now) {
  if (const auto known = known_deadline(variables)) return known;
  std::optional<seconds> left;
  if (const auto slurm = job(variables, "SLURM_JOB_ID")) {
    const auto answer = ask("squeue --noheader --format=%L --job='" + *slurm + "'");
    if (answer) left = parse_slurm_time(trimmed(*answer));
  } else if (const auto pbs = job(variables, "PBS_JOBID")) {
    const auto answer = ask("qstat -f '" + *pbs + "'");
    return answer ? parse_qstat_deadline(*answer, now) : std::nullopt;
  }
  return left ? std::optional(now + *left) : std::nullopt;
}

std::optional<seconds> parse_slurm_time(std::string_view text) {
  long long days = 0;
  const auto dash = text.find('-');
  if (dash != std::string_view::npos) {
    if (!text::parse_integer(text.substr(0, dash), days)) return {};
    text.remove_prefix(dash + 1);
  }
  const auto clock = parse_clock(text);
  return clock ? std::optional(*clock + std::chrono::days(days)) : std::nullopt;
}

std::chrono::milliseconds stop_margin(const core::Variables& variables) {
  const auto asked = variables("HORTATOR_STOP_MARGIN");
  if (!asked) return std::chrono::minutes(1);
  if (const auto margin = units::parse_duration(*asked)) return *margin;
  throw UsageError({.what = "HORTATOR_STOP_MARGIN is " + text::quote(*asked),
                    .why = "it is how long before the end of the job the run stops",
                    .hint = "give a duration such as 20s"});
}

std::optional<Deadline> parse_qstat_deadline(std::string_view listing, Deadline now) {
  const auto clock = [&](const char* name) {
    const auto field = qstat_field(listing, name);
    return field ? parse_clock(*field) : std::nullopt;
  };
  const auto limit = clock("Resource_List.walltime");
  if (!limit) return {};
  const auto field = qstat_field(listing, "stime");
  if (const auto start = field ? parse_date(*field) : std::nullopt) return *start + *limit;
  return now + *limit - clock("resources_used.walltime").value_or(seconds(0));
}

}  // namespace hortator::runtime
