#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "formats/columns/columnar_file.hpp"

namespace hortator::data {

/// `count` rows from `first` on as a tensor [count, ...], a dimension for each level of lists; nothing if lists of a
/// level differ in length. The result is a view. Pure.
std::optional<at::Tensor> rows_of(const formats::ColumnValues& column, std::int64_t first, std::int64_t count);

}  // namespace hortator::data
