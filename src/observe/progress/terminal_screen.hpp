#pragma once

#include <memory>
#include <mutex>

#include "observe/progress/screen.hpp"

namespace hortator::observe {

/// The last line of a terminal, redrawn in place; lines of the log and of State::print push it down.
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
  void make_way();

  mutable std::mutex mutex_;  // any thread may log
  bool is_drawn_ = false;
};

/// Information lines of the main rank.
class LogScreen final : public Screen {
 public:
  Pace::Medium medium() const override { return Pace::Medium::log; }
  int columns() const override { return 0; }
  void show(const std::string& line) override;
  void keep() override {}
};

/// The one that fits what standard error is.
std::unique_ptr<Screen> make_screen();

}  // namespace hortator::observe
