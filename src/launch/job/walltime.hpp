#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hortator::launching {

/// Seconds of "30:00" (minutes), "02:00:00" and Slurm's "1-12:00:00"; nothing for other text and for no time at all.
std::optional<long long> parse_walltime(std::string_view words);

/// "26:00:00": what Slurm and PBS both understand.
std::string walltime(long long seconds);

}  // namespace hortator::launching
