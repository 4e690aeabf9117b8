#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/datasets/table.hpp>
#include <string_view>

namespace hortator::data {

std::string_view name_of(ColumnType type);
at::ScalarType scalar_type_of(ColumnType type);  ///< must not be text

/// Parses a cell and writes its value to `element`, an element of a tensor of the type. Returns false if the cell is
/// not a value of the type. Ignores spaces around it.
bool parse_cell(std::string_view cell, ColumnType type, void* element);

/// Row 0 of each column.
TableRow first_row(const TableBatch& batch);

}  // namespace hortator::data
