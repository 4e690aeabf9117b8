#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hortator::launching {

/// Parses "30:00" (minutes and seconds), "02:00:00" and Slurm's "1-12:00:00" into seconds; nothing for other text and
/// for 0.
std::optional<long long> parse_walltime(std::string_view text);

/// "26:00:00", a form that both Slurm and PBS accept.
std::string walltime(long long seconds);

/// Slurm's other forms as parse_walltime() reads them: "90" is minutes, "1-12" days and hours, "1-12:30" also minutes.
/// Any other text is returned as it is.
std::string time_of_slurm(const std::string& text);
/// The same for PBS: "3600" is seconds.
std::string time_of_pbs(const std::string& text);

}  // namespace hortator::launching
