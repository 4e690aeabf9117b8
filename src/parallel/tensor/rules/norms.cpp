// Normalisation: along dimensions that are not divided each rank has all it needs.

#include <ATen/ATen.h>

#include <optional>
#include <utility>

#include "parallel/tensor/rules/rules.hpp"

namespace hortator::parallel::rules {
namespace {

bool is_divided_before(const Operand& x, std::size_t normalised) {
  return x.is_divided() && x.division->dim < x.dims() - static_cast<std::int64_t>(normalised);
}

std::optional<at::Tensor> spread_weight(const Operand& weight, const SharedRanks& ranks) {
  if (!weight.tensor.defined()) return {};
  return spread(weight.whole(), ranks);
}

/// The logarithms of softmax, or of its denominator, along a divided dimension: each rank's part of each row.
struct DividedRows {
  at::Tensor shifted;  ///< by the maximum of each row, so that exp() does not overflow
  at::Tensor sums;     ///< of exp(shifted), of whole rows
};

DividedRows divided_rows(const Operand& x, std::optional<at::ScalarType> type) {
  const auto dim = x.division->dim;
  const auto values = type ? x.tensor.to(*type) : x.tensor;
  const auto shifted = values - x.ranks->max(values.detach().amax(dim, /*keepdim=*/true));
  return {.shifted = shifted, .sums = parallel::sum(shifted.exp().sum(dim, /*keepdim=*/true), x.ranks)};
}

}  // namespace

// layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable)
bool layer_norm(OperatorCall& call) {
  const auto x = call.operand(0);
  const auto shape = call.integers(1);
  if (!is_divided_before(x, shape.size())) return false;
  auto result = at::layer_norm(x.tensor, shape, spread_weight(call.operand(2), x.ranks),
                               spread_weight(call.operand(3), x.ranks), call.argument(4).toDouble(), call.flag(5));
  call.give_divided(std::move(result), *x.division, x.ranks);
  return true;
}

// rms_norm(input, normalized_shape, weight, eps)
bool rms_norm(OperatorCall& call) {
  const auto x = call.operand(0);
  const auto shape = call.integers(1);
  if (!is_divided_before(x, shape.size())) return false;
  auto result =
      at::rms_norm(x.tensor, shape, spread_weight(call.operand(2), x.ranks), call.argument(3).toOptional<double>());
  call.give_divided(std::move(result), *x.division, x.ranks);
  return true;
}

bool softmax(OperatorCall& call) {
  const auto x = call.operand(0);
  if (!x.is_divided_along(from_front(call.integer(1), x.dims()))) return along_dims(call);
  if (x.division->padding > 0) return false;
  const auto [shifted, sums] = divided_rows(x, call.optional_type(2));
  call.give_divided(shifted.exp() / spread(sums, x.ranks), *x.division, x.ranks);
  return true;
}

bool log_softmax(OperatorCall& call) {
  const auto x = call.operand(0);
  if (!x.is_divided_along(from_front(call.integer(1), x.dims()))) return along_dims(call);
  if (x.division->padding > 0) return false;
  const auto [shifted, sums] = divided_rows(x, call.optional_type(2));
  call.give_divided(shifted - spread(sums.log(), x.ranks), *x.division, x.ranks);
  return true;
}

}  // namespace hortator::parallel::rules
