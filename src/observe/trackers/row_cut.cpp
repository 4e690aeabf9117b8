#include "observe/trackers/row_cut.hpp"

#include <hortator/error.hpp>
#include <string>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::observe {
namespace {

namespace fs = std::filesystem;

void replace(const fs::path& file, std::string_view content) {
  const fs::path aside = file.string() + ".new";
  if (!core::write_whole(file, aside, content))
    throw Error({.what = "Cannot write " + aside.string(), .why = "the resumed run continues its log there"});
}

}  // namespace

void cut_rows(const fs::path& file, FirstRow first, const StepOf& step_of, std::int64_t last_step) {
  std::error_code none;
  if (!fs::exists(file, none)) return;
  const auto content = core::read_whole(file).value_or("");
  std::string kept;
  kept.reserve(content.size());
  for (std::size_t begin = 0, end = 0; (end = content.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto row = std::string_view(content).substr(begin, end - begin);
    const auto step = step_of(row);
    const bool is_heading = begin == 0 && first == FirstRow::heading;
    if (is_heading || (step && *step <= last_step)) kept.append(row).append("\n");
  }
  if (kept == content) return;
  // Usually only rows at the end are removed, so that truncating is enough.
  if (content.starts_with(kept)) return fs::resize_file(file, kept.size());
  replace(file, kept);
}

void put_aside(const fs::path& file) {
  std::error_code none;
  if (fs::exists(file, none)) fs::rename(file, file.string() + ".old");
}

}  // namespace hortator::observe
