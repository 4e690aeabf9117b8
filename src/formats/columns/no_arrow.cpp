#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "formats/columns/columnar_file.hpp"

namespace hortator::formats {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path) {
  throw UsageError(
      {.what = text::concat(path, " is a Parquet or Arrow file, which this Hortator cannot read"),
       .why = "it was built where Arrow's C++ library was not found",
       .hint = "configure with Arrow of your site, of conda or of pyarrow (see INSTALL) and build again, or "
               "write JSON lines with Python's pandas: pandas.read_parquet('train.parquet').to_json('train.jsonl', "
               "orient='records', lines=True)"});
}

}  // namespace

std::unique_ptr<ColumnarFile> open_columnar_file(const std::filesystem::path& path, const ColumnChoice& /*choice*/) {
  refuse(path);
}

std::vector<std::string> column_names(const std::filesystem::path& path) { refuse(path); }

}  // namespace hortator::formats
