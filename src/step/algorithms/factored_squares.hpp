#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "step/algorithms/matrix_runs.hpp"

namespace hortator::step {

/// The squares of a slice of a parameter of two or more dimensions, summed along rows and columns, and estimates of the
/// squares from such sums.
class FactoredSquares {
 public:
  FactoredSquares(MatrixLayout layout, core::Range range) : layout_(layout), runs_(matrix_runs(layout, range)) {}

  struct Sums {
    at::Tensor rows;     ///< [matrices, rows], of the whole parameter; zero where the slice has nothing
    at::Tensor columns;  ///< [matrices, columns]
  };
  /// `slice` has one dimension. In double precision.
  Sums sums(const at::Tensor& slice) const;
  /// For each element of the slice, the product of its row's and its column's mean over the mean of its matrix, which
  /// is at least `smallest`. `rows` and `columns` are means, of the shapes above.
  at::Tensor estimate(const at::Tensor& rows, const at::Tensor& columns, double smallest) const;

 private:
  MatrixLayout layout_;
  std::vector<MatrixRun> runs_;
};

}  // namespace hortator::step
