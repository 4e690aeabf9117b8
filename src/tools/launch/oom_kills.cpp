#include "tools/launch/oom_kills.hpp"

#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::tools {

std::optional<long long> parse_oom_kills(std::string_view text) {
  constexpr std::string_view key = "oom_kill ";
  for (const auto& line : text::split(text, '\n')) {
    long long count = 0;
    if (line.starts_with(key) && text::parse_integer(line.substr(key.size()), count)) return count;
  }
  return {};
}

std::string parse_control_group(std::string_view text) {
  constexpr std::string_view key = "0::/";
  for (const auto& line : text::split(text, '\n')) {
    if (line.starts_with(key)) return line.substr(key.size());
  }
  return "";
}

std::optional<OomKills> count_oom_kills() {
  const auto group = parse_control_group(core::read_whole("/proc/self/cgroup").value_or(""));
  for (const auto& file : {text::concat("/sys/fs/cgroup/", group, "/memory.events"), std::string("/proc/vmstat")}) {
    const auto count = parse_oom_kills(core::read_whole(file).value_or(""));
    if (count) return OomKills{.count = *count, .source = file};
  }
  return {};
}

}  // namespace hortator::tools
