#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace example {

/// The loss of each step, in a CSV file. A resumed run keeps the rows of the steps that its checkpoint has done.
class LossLog {
 public:
  LossLog(const std::filesystem::path& file, std::int64_t steps_done);

  void add(std::int64_t step, double loss);

 private:
  std::ofstream out_;
};

}  // namespace example
