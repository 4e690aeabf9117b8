#include "core/text/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <utility>

namespace hortator::text {
namespace {

// Insertions, deletions, replacements and exchanges of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

std::string_view without_dashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

}  // namespace

std::string quote(std::string_view name) { return "'" + std::string(name) + "'"; }

std::string count(long long number, std::string_view noun) {
  return std::to_string(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

std::string nearest(std::string_view name, std::span<const std::string> known) {
  std::string best;
  const auto typed = without_dashes(name);
  std::size_t best_distance = typed.size() / 3 + 1;
  for (const auto& candidate : known) {
    const auto distance = edit_distance(typed, without_dashes(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view name, std::span<const std::string> known) {
  const auto near = nearest(name, known);
  return near.empty() ? "known are: " + join(known) : "did you mean " + quote(near) + "?";
}

std::string_view file_name(std::string_view path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

std::optional<bool> parse_bool(std::string_view text) {
  constexpr std::array<std::string_view, 6> yes = {"y", "yes", "t", "true", "on", "1"};
  constexpr std::array<std::string_view, 6> no = {"n", "no", "f", "false", "off", "0"};
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (std::ranges::find(yes, lower) != yes.end()) return true;
  if (std::ranges::find(no, lower) != no.end()) return false;
  return {};
}

bool parse_integer(std::string_view text, long long& value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return !text.empty() && result.ec == std::errc() && result.ptr == end;
}

}  // namespace hortator::text
