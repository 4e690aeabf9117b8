#include "observe/progress/render.hpp"

#include <algorithm>

#include "core/text/terminal.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "observe/status/progress_text.hpp"

namespace hortator::observe {
namespace {

constexpr int min_bar_width = 5;
constexpr int max_bar_width = 30;
constexpr std::string_view gap = "  ";

using core::cut;
using core::one_line;  // a line break in a title would break the drawing
using core::width_of;
using text::print;

std::string time_text(const Snapshot& now) {
  const auto left = static_cast<double>(now.total - now.done) / now.per_second;
  const bool is_known = !now.is_over && now.per_second > 0 && left >= 0 && left < 1e9;
  if (!is_known) return units::clock(now.elapsed);
  return text::concat(units::clock(now.elapsed), ", ", units::clock(left), " left");
}

double fraction(const Snapshot& now) {
  if (now.total <= 0) return 1;
  return std::clamp(static_cast<double>(now.done) / static_cast<double>(now.total), 0.0, 1.0);
}

// Rounded down, so that 100% appears only when all is done.
std::string percent_text(const Snapshot& now, const char* format) {
  return print(format, static_cast<int>(fraction(now) * 100));
}

bool is_endless(const Snapshot& now) { return now.total < 0; }

std::string count_text(const Snapshot& now) {
  return is_endless(now) ? std::to_string(now.done) : text::concat(now.done, '/', now.total);
}

std::vector<std::string> details(const Snapshot& now) {
  std::vector<std::string> items;
  if (now.per_second > 0) items.push_back(observe::rate_text(now.per_second));
  items.push_back(time_text(now));
  for (const auto& [name, value] : now.values) items.push_back(text::concat(name, ' ', observe::value_text(value)));
  return items;
}

}  // namespace

std::string bar_line(const Snapshot& now, int columns) {
  const auto percent = is_endless(now) ? "" : percent_text(now, "%3d%%");
  std::string head = text::concat(one_line(now.title), now.title.empty() ? "" : " ", percent);
  std::string tail = text::concat(gap, count_text(now));
  for (const auto& item : details(now)) {
    if (width_of(head) + width_of(tail) + width_of(item) + static_cast<int>(gap.size()) > columns) break;
    tail.append(gap).append(one_line(item));
  }
  const int room = columns - width_of(head) - width_of(tail) - static_cast<int>(std::string_view(" []").size());
  if (room >= min_bar_width && !is_endless(now))
    head += ' ' + observe::bar(fraction(now), std::min(room, max_bar_width));
  return cut(head + tail, std::max(columns, 0));
}

std::string log_line(const Snapshot& now) {
  return one_line(text::concat(now.title, now.title.empty() ? "" : ": ", count_text(now),
                               is_endless(now) ? ", " : percent_text(now, " (%d%%), "), text::join(details(now))));
}

}  // namespace hortator::observe
