#include "track/row_cut.hpp"

#include <fstream>
#include <hortator/error.hpp>
#include <sstream>
#include <string>

#include "base/text.hpp"

namespace hortator::track {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return std::move(content).str();
}

void replace(const fs::path& file, std::string_view content) {
  const fs::path aside = file.string() + ".new";
  std::ofstream out(aside, std::ios::binary);
  out << content;
  out.close();
  if (!out) throw Error({.what = aside.string() + " cannot be written", .why = "the numbers of the run go on there"});
  fs::rename(aside, file);
}

}  // namespace

void cut_rows(const fs::path& file, FirstRow first, const StepOf& step_of, std::int64_t last_step) {
  std::error_code none;
  if (!fs::exists(file, none)) return;
  const auto content = read(file);
  std::string kept;
  kept.reserve(content.size());
  for (std::size_t begin = 0, end = 0; (end = content.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto row = std::string_view(content).substr(begin, end - begin);
    const auto step = step_of(row);
    const bool is_heading = begin == 0 && first == FirstRow::heading;
    if (is_heading || (step && *step <= last_step)) kept.append(row).append("\n");
  }
  if (kept == content) return;
  // As a rule only the end goes: nothing needs to be written again.
  if (content.starts_with(kept)) return fs::resize_file(file, kept.size());
  replace(file, kept);
}

void put_aside(const fs::path& file) {
  std::error_code none;
  if (fs::exists(file, none)) fs::rename(file, file.string() + ".old");
}

}  // namespace hortator::track
