#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "observe/progress/pace.hpp"

namespace hortator::observe {

/// Output for the lines of a bar.
class Screen {
 public:
  virtual ~Screen() = default;

  virtual Pace::Medium medium() const = 0;
  virtual int columns() const = 0;  ///< of a terminal
  /// Shows `line` in place of the previous one; in a log, below it.
  virtual void show(const std::string& line) = 0;
  /// Keeps the line shown last; the next one goes below it.
  virtual void keep() = 0;
};

/// The columns of the terminal that shows this process's standard error; nothing when there is none. mpirun gives its
/// ranks a pipe and copies it to its own standard error. In that case mpirun's terminal counts. Only ranks on mpirun's
/// machine can see it, so that a single node draws.
std::optional<int> terminal_columns();

/// Whether a process of this name copies its children's standard error to its own.
bool is_mpirun(std::string_view process_name);

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
