#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

namespace example {

/// The loss of each step, in a CSV file for spreadsheets and plots. A resumed run keeps the rows of the steps that its
/// checkpoint has done. One rank writes it.
class LossLog {
 public:
  /// `columns` are those behind the step's number.
  LossLog(const std::filesystem::path& file, std::int64_t steps_done, const std::string& columns = "loss");

  void add(std::int64_t step, std::initializer_list<double> values);

 private:
  std::ofstream out_;
};

}  // namespace example
