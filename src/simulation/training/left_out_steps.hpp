#pragma once

#include <cstdint>
#include <string>

namespace hortator::simulation {

/// Counts the training steps of a model that were left out because a number was not finite.
class LeftOutSteps {
 public:
  /// `reports`: whether this rank logs them.
  LeftOutSteps(std::string model, bool reports) : model_(std::move(model)), reports_(reports) {}

  void note_step() { in_a_row_ = 0; }
  /// Logs the first one and every 50th. Throws Error if there were too many in a row. All ranks call it together.
  void note_left_out(const char* number);

 private:
  std::string model_;
  bool reports_;
  std::int64_t all_ = 0;
  std::int64_t in_a_row_ = 0;
};

}  // namespace hortator::simulation
