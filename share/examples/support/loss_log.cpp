#include "loss_log.hpp"

#include <hortator/error.hpp>
#include <limits>
#include <string>

namespace example {
namespace {

/// The header, and the rows of the first steps.
std::string kept_rows(const std::filesystem::path& file, std::int64_t steps, const std::string& columns) {
  std::string kept = "step," + columns + '\n';
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  for (std::int64_t row = 0; row < steps && std::getline(in, line); ++row) kept += line + '\n';
  return kept;
}

}  // namespace

LossLog::LossLog(const std::filesystem::path& file, std::int64_t steps_done, const std::string& columns) {
  const auto kept = kept_rows(file, steps_done, columns);
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
  out_.open(file, std::ios::trunc);
  if (!(out_ << kept << std::flush))
    throw hortator::Error({.what = "Cannot write the loss log '" + file.string() + "'"});
  out_.precision(std::numeric_limits<float>::max_digits10);
}

void LossLog::add(std::int64_t step, std::initializer_list<double> values) {
  out_ << step;
  for (const auto value : values) out_ << ',' << value;
  out_ << std::endl;  // flushed, so that others can read each row at once
}

}  // namespace example
