#include "observe/progress/terminal_screen.hpp"

#include <cstdio>

#include "core/log.hpp"
#include "observe/progress/terminal.hpp"

namespace hortator::observe {
namespace {

constexpr const char* to_start_of_cleared_line = "\r\x1b[K";

// One write: standard error has no buffer of its own, and mpirun passes on what comes in one piece in one piece.
void write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

TerminalScreen::~TerminalScreen() { keep(); }

// The last column stays free: terminals differ in when they wrap.
int TerminalScreen::columns() const { return terminal_columns().value_or(80) - 1; }

// The guard is set before our lock is taken: a logging thread takes the log's lock first, then ours.
void TerminalScreen::show(const std::string& line) {
  log::set_line_guard([this] { make_way(); });
  const std::scoped_lock lock(mutex_);
  write(to_start_of_cleared_line + line);
  is_drawn_ = true;
}

void TerminalScreen::keep() {
  log::set_line_guard(nullptr);
  const std::scoped_lock lock(mutex_);
  if (is_drawn_) write("\n");
  is_drawn_ = false;
}

void TerminalScreen::make_way() {
  const std::scoped_lock lock(mutex_);
  if (is_drawn_) write(to_start_of_cleared_line);
  is_drawn_ = false;
}

void LogScreen::show(const std::string& line) { log::write_info(line); }

std::unique_ptr<Screen> make_screen() {
  if (terminal_columns()) return std::make_unique<TerminalScreen>();
  return std::make_unique<LogScreen>();
}

}  // namespace hortator::observe
