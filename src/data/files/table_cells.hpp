#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/datasets/table.hpp>
#include <string_view>

namespace hortator::data {

std::string_view name_of(ColumnType type);
at::ScalarType scalar_type_of(ColumnType type);  ///< not of text

/// Writes what a cell says where a tensor of the type has an element; false when it says no such number. Spaces around
/// it do not count.
bool parse_cell(std::string_view cell, ColumnType type, void* element);

/// Row 0 of each column.
TableRow first_row(const TableBatch& batch);

}  // namespace hortator::data
