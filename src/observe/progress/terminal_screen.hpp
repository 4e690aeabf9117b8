#pragma once

#include <memory>
#include <mutex>

#include "observe/progress/screen.hpp"

namespace hortator::observe {

/// The last line of a terminal, redrawn in place; lines of the log and of State::print appear above it.
class TerminalScreen final : public Screen {
 public:
  TerminalScreen() = default;
  ~TerminalScreen() override;
  TerminalScreen(const TerminalScreen&) = delete;
  TerminalScreen& operator=(const TerminalScreen&) = delete;

  Pace::Medium medium() const override { return Pace::Medium::terminal; }
  int columns() const override;
  void show(const std::string& line) override;
  void keep() override;

 private:
  void clear_line();

  mutable std::mutex mutex_;  // any thread may log
  bool is_drawn_ = false;
};

/// Writes the lines to the log, as information from the main rank.
class LogScreen final : public Screen {
 public:
  Pace::Medium medium() const override { return Pace::Medium::log; }
  int columns() const override { return 0; }
  void show(const std::string& line) override;
  void keep() override {}
};

/// Makes the screen for the kind of standard error: a terminal or a log.
std::unique_ptr<Screen> make_screen();

}  // namespace hortator::observe
