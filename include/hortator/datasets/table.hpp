#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/export.hpp>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace hortator {

/// The type of a column's values: a tensor of this type, or unchanged text.
enum class ColumnType { float32, float64, int64, boolean, text };

/// A column of a table: its name in the file and its type.
struct TableColumn {
  std::string name = {};
  ColumnType type = ColumnType::float32;
};

/// One row of a table, by column name.
struct TableRow {
  std::map<std::string, at::Tensor> tensors = {};
  std::map<std::string, std::string> texts = {};

  auto fields() { return std::tie(tensors, texts); }
};

/// Rows of a table, by column name: a tensor with one entry per row, or one text per row.
struct TableBatch {
  std::map<std::string, at::Tensor> tensors = {};
  std::map<std::string, std::vector<std::string>> texts = {};

  auto fields() { return std::tie(tensors, texts); }
};

}  // namespace hortator
