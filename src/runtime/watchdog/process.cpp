#include "runtime/watchdog/process.hpp"

#include <string>

#include "core/process.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::runtime {

long parse_tracer(std::string_view status) {
  constexpr std::string_view key = "TracerPid:\t";
  const auto begin = status.find(key);
  if (begin == std::string_view::npos) return 0;
  const auto rest = status.substr(begin + key.size());
  long long pid = 0;
  return text::parse_integer(rest.substr(0, rest.find('\n')), pid) ? static_cast<long>(pid) : 0;
}

RankLife life_of(long pid, std::uint64_t start) {
  const auto facts = core::process_facts(pid);
  if (!facts || facts->start != start || facts->is_dead()) return RankLife::vanished;
  if (parse_tracer(core::read_whole(text::concat("/proc/", pid, "/status")).value_or("")) != 0) return RankLife::traced;
  if (facts->state == 'T') return RankLife::stopped;
  return facts->state == 'D' ? RankLife::blocked : RankLife::running;
}

}  // namespace hortator::runtime
