#include "runtime/watchdog/process.hpp"

#include <string>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::runtime {
namespace {

std::string read(long pid, const char* name) {
  return core::read_whole(text::concat("/proc/", pid, '/', name)).value_or("");
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

long parse_tracer(std::string_view status) {
  constexpr std::string_view key = "TracerPid:\t";
  const auto begin = status.find(key);
  if (begin == std::string_view::npos) return 0;
  const auto rest = status.substr(begin + key.size());
  long long pid = 0;
  return text::parse_integer(rest.substr(0, rest.find('\n')), pid) ? static_cast<long>(pid) : 0;
}

std::optional<ProcessFacts> process_facts(long pid) { return parse_stat(read(pid, "stat")); }

RankLife life_of(long pid, std::uint64_t start) {
  const auto facts = process_facts(pid);
  if (!facts || facts->start != start || facts->state == 'Z' || facts->state == 'X') return RankLife::vanished;
  if (parse_tracer(read(pid, "status")) != 0) return RankLife::traced;
  if (facts->state == 'T') return RankLife::stopped;
  return facts->state == 'D' ? RankLife::blocked : RankLife::running;
}

}  // namespace hortator::runtime
