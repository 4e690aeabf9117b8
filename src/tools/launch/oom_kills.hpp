#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hortator::tools {

/// The number of processes that the kernel's out-of-memory killer has ended so far.
struct OomKills {
  long long count = 0;
  std::string source = "";  ///< the file with the counter
};

/// Those of this process's control group (version 2), else those of the machine; nothing if neither can be read.
std::optional<OomKills> count_oom_kills();

/// Parses the line "oom_kill N" of memory.events and /proc/vmstat.
std::optional<long long> parse_oom_kills(std::string_view text);

/// Parses the folder of a control group of version 2 from /proc/self/cgroup; empty if there is none.
std::string parse_control_group(std::string_view text);

}  // namespace hortator::tools
