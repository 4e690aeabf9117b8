#pragma once

#include <string>

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

}  // namespace hortator::observe
