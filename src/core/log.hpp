#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/text/text.hpp"

/// Log lines on standard error: information from the main rank only, warnings from every rank, each with [rank/host].
/// HORTATOR_LOG_LEVEL=warning suppresses information; error suppresses warnings as well.
namespace hortator::log {

/// Sets rank and host for the prefix. Call it once the ranks are known; until then lines have no prefix.
void set_identity(int rank, std::string_view host);

void write_info(std::string_view line);
void write_warning(std::string_view line);
/// Writes a line unchanged to standard error, for a process that is about to end. Does not wait for locks.
void write_last_line(std::string_view line);
/// Writes a line of the program to standard output, on any rank.
void print(std::string_view line);

/// Sets a function that is called before each of these lines, so that a progress bar on the terminal's last line can
/// clear it. It must not log. Empty: none.
void set_line_guard(std::function<void()> clear_line);

template <typename... Parts>
void info(const Parts&... parts) {
  write_info(text::concat(parts...));
}

template <typename... Parts>
void warn(const Parts&... parts) {
  write_warning(text::concat(parts...));
}

/// Writes a line with this rank's prefix, on any rank: for callers that have already chosen the rank.
void write_everywhere(std::string_view line);

}  // namespace hortator::log
