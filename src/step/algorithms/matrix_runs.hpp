#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/range.hpp"

/// Finds the rows of matrices that lie in a range of the elements of a parameter. Pure.
namespace hortator::step {

/// The last two dimensions of a parameter as matrices, one after the other.
struct MatrixLayout {
  std::int64_t matrices = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;

  std::int64_t elements() const { return matrices * rows * columns; }
};

/// `sizes` has at least two dimensions.
MatrixLayout matrix_layout(std::span<const std::int64_t> sizes);

/// Equal rows of matrices that follow each other: whole matrices, or some rows of one.
struct MatrixRun {
  std::int64_t matrix = 0;  ///< the first
  std::int64_t matrices = 1;
  std::int64_t row = 0;  ///< the first, of each matrix
  std::int64_t rows = 0;
  core::Range elements = {};       ///< of the range, counted from its beginning
  std::int64_t missing_front = 0;  ///< elements of the first row that are not in the range
  std::int64_t missing_back = 0;   ///< elements of the last row
};

/// Covers `range`, a range of the parameter's elements, by at most three runs.
std::vector<MatrixRun> matrix_runs(const MatrixLayout& layout, core::Range range);

}  // namespace hortator::step
