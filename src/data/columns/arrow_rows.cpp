#include <ATen/ops/cat.h>

#include <algorithm>
#include <hortator/datasets/arrow_rows.hpp>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "core/text/text.hpp"
#include "data/columns/list_rows.hpp"
#include "data/files/rows.hpp"
#include "data/files/table_cells.hpp"
#include "formats/columns/columnar_file.hpp"
#include "formats/file/file_error.hpp"
#include "formats/tensor/stored_rows.hpp"

namespace hortator::data {

/// A group of rows of one of the files.
struct RowGroup {
  std::size_t file, group;
  std::int64_t first, rows;
};

using GroupColumns = std::shared_ptr<const std::vector<formats::ColumnValues>>;

/// The groups that were used last, up to a number of bytes. Thread-safe.
class GroupCache {
 public:
  explicit GroupCache(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Returns the group with this number; `load` reads it unless it is there.
  template <typename Load>
  GroupColumns get(std::size_t number, const Load& load) {
    const std::scoped_lock lock(mutex_);  // also while one is read, which another thread may want as well
    if (const auto found = std::ranges::find(groups_, number, &Entry::number); found != groups_.end()) {
      groups_.splice(groups_.begin(), groups_, found);
      return found->columns;
    }
    auto columns = std::make_shared<const std::vector<formats::ColumnValues>>(load());
    std::size_t bytes = 0;
    for (const auto& column : *columns) bytes += column.bytes();
    groups_.push_front({.number = number, .columns = std::move(columns), .bytes = bytes});
    bytes_ += bytes;
    while (groups_.size() > 1 && bytes_ > max_bytes_) {
      bytes_ -= groups_.back().bytes;
      groups_.pop_back();
    }
    return groups_.front().columns;
  }

 private:
  struct Entry {
    std::size_t number;
    GroupColumns columns;
    std::size_t bytes;
  };

  std::mutex mutex_;
  std::list<Entry> groups_ = {};  ///< the last used first
  std::size_t max_bytes_, bytes_ = 0;
};

/// Files of the same columns as one table.
class ArrowTable {
 public:
  ArrowTable(const std::vector<std::filesystem::path>& paths, const ArrowRowsOptions& options);

  std::int64_t size() const { return size_; }
  std::vector<std::string> columns() const;
  std::int64_t chunk_length() const;
  TableBatch read(std::span<const std::int64_t> rows) const;

 private:
  /// Rows that follow each other in a group, and its columns.
  struct Run {
    const RowGroup* group;
    GroupColumns columns;
    std::int64_t first, count;  ///< within the group
  };

  void add(const std::filesystem::path& path, const formats::ColumnChoice& choice);
  std::vector<Run> runs_of(std::span<const std::int64_t> rows) const;
  at::Tensor tensor_of(std::size_t column, const std::vector<Run>& runs) const;
  [[noreturn]] void refuse_shape(std::size_t column, const Run& run, const char* what) const;

  std::vector<std::filesystem::path> paths_;
  std::vector<std::unique_ptr<formats::ColumnarFile>> files_;
  std::vector<formats::ColumnSpec> specs_;
  std::vector<RowGroup> groups_;
  std::int64_t size_ = 0;
  mutable GroupCache cache_;
};

ArrowTable::ArrowTable(const std::vector<std::filesystem::path>& paths, const ArrowRowsOptions& options)
    : cache_(options.cache_bytes) {
  if (paths.empty()) throw UsageError({.what = "ArrowRows: no files were given"});
  for (const auto& path : paths) add(path, {.names = options.columns, .null_value = options.null_value});
  if (size_ == 0) throw formats::FileError({.what = text::concat(text::join(paths), ": there are no rows")});
}

void ArrowTable::add(const std::filesystem::path& path, const formats::ColumnChoice& choice) {
  auto file = formats::open_columnar_file(path, choice);
  for (const auto& spec : file->columns()) {
    if (spec.type || spec.depth == 0) continue;
    throw UsageError(
        {.what = text::concat("The column ", text::quote(spec.name), " of ", path, " has ", formats::to_string(spec)),
         .why = "a row has one text or a tensor of each column",
         .hint = "name the other columns: .columns"});
  }
  if (specs_.empty()) specs_ = file->columns();
  for (std::size_t i = 0; i < std::max(specs_.size(), file->columns().size()); ++i) {
    const auto name = [&](const std::vector<formats::ColumnSpec>& specs) {
      return i < specs.size() ? text::concat(text::quote(specs[i].name), " of ", formats::to_string(specs[i])) : "none";
    };
    if (specs_.size() == file->columns().size() && specs_[i] == file->columns()[i]) continue;
    throw formats::FileError({.what = text::concat("Column ", i, " of ", paths_.front(), " is ", name(specs_), ", of ",
                                                   path, " ", name(file->columns())),
                              .why = "all files of a table have the same columns"});
  }
  for (std::size_t group = 0; group < file->group_rows().size(); ++group) {
    const auto rows = file->group_rows()[group];
    if (rows == 0) continue;
    groups_.push_back({.file = files_.size(), .group = group, .first = size_, .rows = rows});
    if (__builtin_add_overflow(size_, rows, &size_))
      throw formats::FileError({.what = text::concat(path, " has too many rows")});
  }
  paths_.push_back(path);
  files_.push_back(std::move(file));
}

std::vector<std::string> ArrowTable::columns() const {
  std::vector<std::string> names;
  for (const auto& spec : specs_) names.push_back(spec.name);
  return names;
}

std::int64_t ArrowTable::chunk_length() const { return std::ranges::max_element(groups_, {}, &RowGroup::rows)->rows; }

std::vector<ArrowTable::Run> ArrowTable::runs_of(std::span<const std::int64_t> rows) const {
  std::vector<Run> runs;
  std::map<std::size_t, GroupColumns> used;  // a batch reads each group once, also if the cache is small
  formats::for_each_run(rows, [&](std::size_t /*at*/, std::int64_t row, std::int64_t count) {
    while (count > 0) {
      const auto next = std::ranges::upper_bound(groups_, row, {}, &RowGroup::first);
      const auto number = static_cast<std::size_t>(next - groups_.begin()) - 1;
      const auto& group = groups_[number];
      auto& columns = used[number];
      if (!columns) columns = cache_.get(number, [&] { return files_[group.file]->read(group.group); });
      const auto part = std::min(count, group.first + group.rows - row);
      runs.push_back({.group = &group, .columns = columns, .first = row - group.first, .count = part});
      row += part;
      count -= part;
    }
  });
  return runs;
}

void ArrowTable::refuse_shape(std::size_t column, const Run& run, const char* what) const {
  throw formats::FileError({.what = text::concat(paths_[run.group->file], ", rows from ", run.group->first + run.first,
                                                 " of the table: ", text::quote(specs_[column].name),
                                                 " has lists of different lengths ", what),
                            .hint = "give data_loader() a function that pads"});
}

at::Tensor ArrowTable::tensor_of(std::size_t column, const std::vector<Run>& runs) const {
  std::vector<at::Tensor> parts;
  for (const auto& run : runs) {
    const auto part = rows_of((*run.columns)[column], run.first, run.count);
    if (!part) refuse_shape(column, run, run.count == 1 ? "in one row" : "in one batch");
    if (!parts.empty() && part->sizes().slice(1) != parts.front().sizes().slice(1))
      refuse_shape(column, run, "in one batch");
    parts.push_back(*part);
  }
  return at::cat(parts);  // a copy, which the caller may change
}

TableBatch ArrowTable::read(std::span<const std::int64_t> rows) const {
  require_samples(rows, size_, paths_.front());
  const auto runs = runs_of(rows);
  TableBatch batch;
  for (std::size_t column = 0; column < specs_.size(); ++column) {
    if (specs_[column].type) {
      batch.tensors[specs_[column].name] = tensor_of(column, runs);
      continue;
    }
    auto& texts = batch.texts[specs_[column].name];
    for (const auto& run : runs) {
      const auto begin = (*run.columns)[column].texts.begin() + run.first;
      texts.insert(texts.end(), begin, begin + run.count);
    }
  }
  return batch;
}

}  // namespace hortator::data

namespace hortator {

ArrowRows::ArrowRows(const std::vector<std::filesystem::path>& files, const ArrowRowsOptions& options)
    : table_(std::make_shared<const data::ArrowTable>(files, options)) {}

ArrowRows::ArrowRows(std::initializer_list<std::filesystem::path> files, const ArrowRowsOptions& options)
    : ArrowRows(std::vector(files), options) {}

ArrowRows::ArrowRows(const std::filesystem::path& file, const ArrowRowsOptions& options)
    : ArrowRows(std::vector{file}, options) {}

std::int64_t ArrowRows::size() const { return table_->size(); }
std::vector<std::string> ArrowRows::columns() const { return table_->columns(); }
std::int64_t ArrowRows::chunk_length() const { return table_->chunk_length(); }
TableRow ArrowRows::get(std::int64_t row) const { return data::first_row(get_batch({&row, 1})); }
TableBatch ArrowRows::get_batch(std::span<const std::int64_t> rows) const { return table_->read(rows); }

}  // namespace hortator
