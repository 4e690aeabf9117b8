#pragma once

#include <arrow/array/array_base.h>
#include <arrow/type.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/columns/columnar_file.hpp"

namespace hortator::formats {

/// What a column of this type is read as. Throws UsageError if it can be neither tensor nor text. Pure.
ColumnSpec column_spec(const arrow::Field& field, const std::filesystem::path& path);

/// Collects a column of Arrow's, array by array.
class ColumnDecoder {
 public:
  ColumnDecoder(const ColumnSpec& spec, std::optional<double> null_value);

  /// Throws FileError, without the file's name, for what is damaged, a null that has no value, and a number that does
  /// not fit.
  void append(const arrow::Array& rows);
  ColumnValues finish();

  bool is_null(const arrow::Array& array, std::int64_t at) const;
  /// What stands for a null. Throws UsageError if the type cannot hold it.
  template <typename Element>
  Element null_element() const;
  void add_numbers(at::Tensor numbers) { numbers_.push_back(std::move(numbers)); }
  void add_text(std::string text) { values_.texts.push_back(std::move(text)); }

 private:
  void append_level(const arrow::Array& array, std::size_t level);
  template <typename List>
  void append_lists(const List& lists, std::size_t level);
  void append_entries(const arrow::Array& array);

  ColumnSpec spec_;
  std::optional<double> null_value_;
  std::vector<at::Tensor> numbers_ = {};
  ColumnValues values_ = {};
};

}  // namespace hortator::formats
