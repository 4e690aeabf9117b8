#include "observe/progress/terminal_screen.hpp"

#include <cstdio>

#include "core/log.hpp"
#include "observe/progress/terminal.hpp"

namespace hortator::observe {
namespace {

constexpr const char* to_start_of_cleared_line = "\r\x1b[K";

// A single write: standard error is unbuffered, and mpirun forwards each write as a whole.
void write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

TerminalScreen::~TerminalScreen() { keep(); }

// The last column stays empty: terminals differ in when they wrap.
int TerminalScreen::columns() const { return terminal_columns().value_or(80) - 1; }

// Sets the guard before locking: a logging thread locks the log first, then this screen.
void TerminalScreen::show(const std::string& line) {
  log::set_line_guard([this] { clear_line(); });
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

void TerminalScreen::clear_line() {
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
