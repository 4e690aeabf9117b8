#include "launch/settings/walltime.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/text/text.hpp"

namespace hortator::launching {

std::optional<long long> parse_walltime(std::string_view text) {
  long long days = 0;
  std::string clock(text);
  if (const auto dash = clock.find('-'); dash != std::string::npos) {
    if (!hortator::text::parse_integer(clock.substr(0, dash), days) || days < 0 || days > 3650) return std::nullopt;
    clock = clock.substr(dash + 1);
  }
  const auto parts = hortator::text::split(clock, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  long long seconds = 0;
  for (const auto& part : parts) {
    long long value = 0;
    if (part.empty() || part.size() > 4 || part.find_first_not_of("0123456789") != std::string::npos)
      return std::nullopt;
    hortator::text::parse_integer(part, value);
    seconds = 60 * seconds + value;
  }
  seconds += 86400 * days;
  return seconds > 0 ? std::optional<long long>(seconds) : std::nullopt;
}

std::string walltime(long long seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%02lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60, seconds % 60);
  return text.data();
}

std::string time_of_slurm(const std::string& text) {
  long long number = 0;
  if (text.find_first_not_of("0123456789:-") != std::string::npos) return text;
  const auto dash = text.find('-');
  if (dash != std::string::npos) {
    const auto colons = std::count(text.begin(), text.end(), ':');
    return colons >= 2 ? text : text + (colons == 0 ? ":00:00" : ":00");
  }
  const bool is_plain = hortator::text::parse_integer(text, number) && number > 0 && number < 100'000'000;
  return is_plain ? walltime(60 * number) : text;
}

std::string time_of_pbs(const std::string& text) {
  long long number = 0;
  const bool is_plain = hortator::text::parse_integer(text, number) && number > 0 && number < 1'000'000'000;
  return is_plain ? walltime(number) : text;
}

}  // namespace hortator::launching
