#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/export.hpp>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace hortator {

/// What becomes of a column's values: a tensor of this type, or text as it is.
enum class ColumnType { float32, float64, int64, boolean, text };

/// One column of a table: its name in the file, and what its values are.
struct TableColumn {
  std::string name = {};
  ColumnType type = ColumnType::float32;
};

/// One row of a table by its columns' names.
struct TableRow {
  std::map<std::string, at::Tensor> tensors = {};
  std::map<std::string, std::string> texts = {};

  auto fields() { return std::tie(tensors, texts); }
};

/// Rows of a table: a tensor with one row each, or a text each.
struct TableBatch {
  std::map<std::string, at::Tensor> tensors = {};
  std::map<std::string, std::vector<std::string>> texts = {};

  auto fields() { return std::tie(tensors, texts); }
};

}  // namespace hortator
