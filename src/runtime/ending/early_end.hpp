#pragma once

#include <exception>

namespace hortator::runtime {

/// Thrown on all ranks together when the program has reported what the user asked for. hortator::run ends it
/// successfully but does not record a finished run.
class EarlyEnd : public std::exception {
 public:
  const char* what() const noexcept override {
    return "the program has ended early, as asked for; hortator::run() would have taken this for its end";
  }
};

}  // namespace hortator::runtime
