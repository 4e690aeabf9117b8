#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace hortator::data {

/// Throws UsageError unless every number in `samples` is from 0 to size - 1.
void require_samples(std::span<const std::int64_t> samples, std::int64_t size, const std::filesystem::path& path);

/// A column's name and how many rows it has.
struct ColumnLength {
  std::string name;
  std::int64_t rows;
};

/// The number of rows, which all columns must have. Throws FileError, naming two columns, if it differs, and UsageError
/// if there are no columns or a name occurs twice.
std::int64_t common_rows(const std::vector<ColumnLength>& columns, const std::filesystem::path& path);

/// Row 0 of each tensor.
std::map<std::string, at::Tensor> first_row(const std::map<std::string, at::Tensor>& batch);

}  // namespace hortator::data
