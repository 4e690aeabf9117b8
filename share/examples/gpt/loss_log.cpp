#include "loss_log.hpp"

#include <hortator/error.hpp>
#include <limits>
#include <string>

namespace gpt {
namespace {

// Returns the header and the rows of the first `steps` steps.
std::string kept_of(const std::filesystem::path& file, std::int64_t steps) {
  std::string kept = "step,loss,learning_rate\n";
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  for (std::int64_t row = 0; row < steps && std::getline(in, line); ++row) kept += line + '\n';
  return kept;
}

}  // namespace

LossLog::LossLog(const std::filesystem::path& file, std::int64_t steps) {
  const auto kept = kept_of(file, steps);
  std::filesystem::create_directories(file.parent_path());
  out_.open(file, std::ios::trunc);
  if (!(out_ << kept)) throw hortator::Error({.what = "Cannot write the loss log '" + file.string() + "'"});
  out_.precision(std::numeric_limits<float>::max_digits10);
}

void LossLog::add(std::int64_t step, double loss, double learning_rate) {
  out_ << step << ',' << loss << ',' << learning_rate
       << std::endl;  // flushed, so that others can read each row at once
}

}  // namespace gpt
