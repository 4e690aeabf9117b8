#include "step/algorithms/matrix_runs.hpp"

#include <algorithm>

namespace hortator::step {
namespace {

// Some rows of one matrix. `range` lies within it.
MatrixRun run_in_matrix(const MatrixLayout& layout, core::Range range, std::int64_t origin) {
  const auto matrix_elements = layout.rows * layout.columns;
  const auto matrix = range.begin / matrix_elements;
  const auto begin = range.begin - matrix * matrix_elements;
  const auto end = range.end - matrix * matrix_elements;
  const auto first = begin / layout.columns;
  const auto last = (end + layout.columns - 1) / layout.columns;
  return {.matrix = matrix,
          .row = first,
          .rows = last - first,
          .elements = {range.begin - origin, range.end - origin},
          .missing_front = begin - first * layout.columns,
          .missing_back = last * layout.columns - end};
}

}  // namespace

MatrixLayout matrix_layout(std::span<const std::int64_t> sizes) {
  MatrixLayout layout{.rows = sizes[sizes.size() - 2], .columns = sizes.back()};
  for (const auto size : sizes.first(sizes.size() - 2)) layout.matrices *= size;
  return layout;
}

std::vector<MatrixRun> matrix_runs(const MatrixLayout& layout, core::Range range) {
  std::vector<MatrixRun> runs;
  const auto matrix_elements = layout.rows * layout.columns;
  for (auto begin = range.begin; begin < range.end;) {
    const auto matrix = begin / matrix_elements;
    const bool begins_matrix = begin == matrix * matrix_elements;
    const auto whole = begins_matrix ? (range.end - begin) / matrix_elements : 0;
    const auto end = whole > 0 ? begin + whole * matrix_elements : std::min(range.end, (matrix + 1) * matrix_elements);
    if (whole > 0) {
      runs.push_back({.matrix = matrix,
                      .matrices = whole,
                      .rows = layout.rows,
                      .elements = {begin - range.begin, end - range.begin}});
    } else {
      runs.push_back(run_in_matrix(layout, {begin, end}, range.begin));
    }
    begin = end;
  }
  return runs;
}

}  // namespace hortator::step
