#pragma once

#include <string>

#include "observe/progress/pace.hpp"

namespace hortator::observe {

/// Where the lines of a bar go.
class Screen {
 public:
  virtual ~Screen() = default;

  virtual Pace::Medium medium() const = 0;
  virtual int columns() const = 0;  ///< of a terminal
  /// Shows `line` in place of the one before; in a log, below it.
  virtual void show(const std::string& line) = 0;
  /// The line last shown stays; what comes next goes below it.
  virtual void keep() = 0;
};

}  // namespace hortator::observe
