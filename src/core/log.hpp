#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/text/text.hpp"

/// Lines for people on standard error: information from the main rank only, warnings from every rank, each with
/// [rank/host]. HORTATOR_LOG_LEVEL=warning leaves out the information, error the warnings as well.
namespace hortator::log {

/// Who speaks. Set once the ranks are known; until then lines carry no prefix.
void set_identity(int rank, std::string_view host);

void write_info(std::string_view line);
void write_warning(std::string_view line);
/// A line on standard error as it is, by a process that is about to end: waits for nobody.
void write_last_words(std::string_view line);
/// A line of the program's own, on standard output, on whichever rank asks.
void print(std::string_view line);

/// Called before each of these lines: what stands on the terminal's last line (a progress bar) makes way. It must not
/// log. Empty: none.
void set_line_guard(std::function<void()> make_way);

template <typename... Parts>
void info(const Parts&... parts) {
  write_info(text::concat(parts...));
}

template <typename... Parts>
void warn(const Parts&... parts) {
  write_warning(text::concat(parts...));
}

}  // namespace hortator::log
