#include "formats/columns/arrow_file.hpp"

#include <algorithm>
#include <string_view>

#include "core/text/text.hpp"
#include "formats/columns/arrow_status.hpp"
#include "formats/columns/arrow_values.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::formats {
namespace {

/// Opens a file by its first bytes.
std::unique_ptr<ArrowFile> open_any(const std::filesystem::path& path) {
  const auto file = std::make_shared<const FixedFile>(path);
  std::string start(std::min<std::uint64_t>(file->bytes(), 8), '\0');
  file->read_at(0, start.data(), start.size());
  return reading(path.string(), [&] {
    if (start.starts_with("PAR1")) return open_parquet(file);
    if (start.starts_with("ARROW1")) return open_arrow_file(file);
    if (start.starts_with("\xff\xff\xff\xff")) return open_arrow_stream(file);
    throw FileError({.what = "it does not begin like a Parquet or Arrow file"});
  });
}

}  // namespace

ChosenColumns choose(const arrow::Schema& schema, const ColumnChoice& choice, const std::filesystem::path& path) {
  ChosenColumns chosen;
  for (const auto& name : choice.names.empty() ? schema.field_names() : choice.names) {
    const auto places = schema.GetAllFieldIndices(name);
    if (places.empty()) {
      throw UsageError({.what = text::concat(path, " has no column ", text::quote(name)),
                        .hint = text::suggestion(name, schema.field_names())});
    }
    if (places.size() > 1 || std::ranges::find(chosen.fields, places.front()) != chosen.fields.end())
      throw UsageError({.what = text::concat("The column ", text::quote(name), " of ", path, " is there twice")});
    chosen.specs.push_back(column_spec(*schema.field(places.front()), path));
    chosen.fields.push_back(places.front());
  }
  if (chosen.specs.empty()) throw UsageError({.what = text::concat(path, " has no columns")});
  return chosen;
}

void ArrowFile::prepare(const ColumnChoice& choice) {
  null_value_ = choice.null_value;
  chosen_ = choose(*schema(), choice, file_->path());
  group_rows_ = reading(file_->path().string(), [&] { return list_groups(); });
  std::int64_t sum = 0;
  for (const auto rows : group_rows_) {
    if (rows < 0 || __builtin_add_overflow(sum, rows, &sum))
      throw FileError({.what = text::concat(file_->path(), ": a group has ", rows, " rows")});
  }
}

std::vector<ColumnValues> ArrowFile::read(std::size_t group) const {
  const auto place = text::concat(file_->path().string(), ", group ", group);
  auto sorted = chosen_.fields;
  std::ranges::sort(sorted);
  const auto table = reading(place, [&] { return read_fields(group, sorted); });
  std::vector<ColumnValues> values;
  for (std::size_t i = 0; i < chosen_.specs.size(); ++i) {
    const auto& spec = chosen_.specs[i];
    values.push_back(reading(text::concat(place, ", column ", text::quote(spec.name)), [&] {
      const auto at = std::ranges::lower_bound(sorted, chosen_.fields[i]) - sorted.begin();
      if (at >= table->num_columns() || table->num_rows() != group_rows_.at(group))
        throw FileError({.what = text::concat("it has ", table->num_rows(), " rows, expected ", group_rows_[group])});
      const auto column = table->column(static_cast<int>(at));
      if (column->length() != table->num_rows())
        throw FileError({.what = text::concat("it has ", column->length(), " rows, expected ", table->num_rows())});
      ColumnDecoder decoder(spec, null_value_);
      for (const auto& rows : column->chunks()) decoder.append(*rows);
      return decoder.finish();
    }));
  }
  file_->require_unchanged();
  return values;
}

std::unique_ptr<ColumnarFile> open_columnar_file(const std::filesystem::path& path, const ColumnChoice& choice) {
  auto file = open_any(path);
  file->prepare(choice);
  return file;
}

std::vector<std::string> column_names(const std::filesystem::path& path) {
  return open_any(path)->schema()->field_names();
}

}  // namespace hortator::formats
