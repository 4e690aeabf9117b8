#include "step/algorithms/factored_squares.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

namespace hortator::step {

FactoredSquares::Sums FactoredSquares::sums(const at::Tensor& slice) const {
  const auto options = slice.options().dtype(at::kDouble);
  Sums sums{.rows = at::zeros({layout_.matrices, layout_.rows}, options),
            .columns = at::zeros({layout_.matrices, layout_.columns}, options)};
  for (const auto& run : runs_) {
    auto part = slice.narrow(0, run.elements.begin, run.elements.size());
    if (run.missing_front + run.missing_back > 0)
      part = at::constant_pad_nd(part, {run.missing_front, run.missing_back});
    const auto squares = part.square().view({run.matrices, run.rows, layout_.columns});
    sums.rows.narrow(0, run.matrix, run.matrices).narrow(1, run.row, run.rows).add_(squares.sum(2, false, at::kDouble));
    sums.columns.narrow(0, run.matrix, run.matrices).add_(squares.sum(1, false, at::kDouble));
  }
  return sums;
}

at::Tensor FactoredSquares::estimate(const at::Tensor& rows, const at::Tensor& columns, double smallest) const {
  std::vector<at::Tensor> parts;
  const auto scales = rows.mean(1, /*keepdim=*/true).clamp_min_(smallest);
  for (const auto& run : runs_) {
    const auto of_rows = rows.narrow(0, run.matrix, run.matrices).narrow(1, run.row, run.rows).unsqueeze(2);
    const auto of_columns = columns.narrow(0, run.matrix, run.matrices).unsqueeze(1);
    const auto product = (of_rows * of_columns).div_(scales.narrow(0, run.matrix, run.matrices).unsqueeze(2));
    parts.push_back(product.reshape({-1}).narrow(0, run.missing_front, run.elements.size()));
  }
  return parts.empty() ? at::empty({0}, rows.options()) : at::cat(parts);
}

}  // namespace hortator::step
