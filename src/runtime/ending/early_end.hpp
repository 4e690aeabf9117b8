#pragma once

#include <exception>

namespace hortator::runtime {

/// Thrown on all ranks together: the program has told what it was asked for, and hortator::run ends it well, but leaves
/// no mark of a finished run.
class EarlyEnd : public std::exception {
 public:
  const char* what() const noexcept override {
    return "the program has ended early, as asked for; hortator::run() would have taken this for its end";
  }
};

}  // namespace hortator::runtime
