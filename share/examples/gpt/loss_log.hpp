#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace gpt {

/// The run's losses as CSV for spreadsheets and plots: step,loss,learning_rate. One rank writes it: the losses are
/// those of its own part of each batch.
class LossLog {
 public:
  /// Appends to an existing file. Rows after `steps` are removed: the resumed run repeats these steps.
  LossLog(const std::filesystem::path& file, std::int64_t steps);

  void add(std::int64_t step, double loss, double learning_rate);

 private:
  std::ofstream out_;
};

}  // namespace gpt
