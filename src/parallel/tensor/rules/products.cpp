// Products of matrices. Where columns of a weight are divided, each rank computes its columns of the result; where rows
// are, each rank computes an addend of the result.

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "parallel/tensor/rules/rules.hpp"

namespace hortator::parallel::rules {
namespace {

/// The division of the result of a product, in its `dims` dimensions, and how the factors take part.
std::optional<Operand> product_by_batch(const Operand& a, const Operand& b, std::int64_t dims) {
  for (const auto* one : {&a, &b}) {
    const auto division = aligned(*one, dims);
    if (!division || division->dim >= dims - 2 || std::min(a.dims(), b.dims()) < 3) continue;
    return Operand{.tensor = at::matmul(beside(a, *division, dims, one->ranks), beside(b, *division, dims, one->ranks)),
                   .division = division,
                   .ranks = one->ranks};
  }
  return {};
}

/// Rows of the first factor, or its batches where the second is one matrix.
std::optional<Operand> product_by_rows(const Operand& a, const Operand& b, std::int64_t dims) {
  if (!a.is_divided() || b.is_divided() || a.dims() != dims || a.is_divided_along(dims - 1)) return {};
  if (b.dims() > 2 && !a.is_divided_along(dims - 2)) return {};
  return Operand{.tensor = at::matmul(a.tensor, spread(b.tensor, a.ranks)), .division = a.division, .ranks = a.ranks};
}

std::optional<Operand> product_by_columns(const Operand& a, const Operand& b, std::int64_t dims) {
  if (!b.is_divided_along(b.dims() - 1) || (b.dims() > 2 && a.is_divided())) return {};
  return Operand{.tensor = at::matmul(spread(a.whole(), b.ranks), b.tensor),
                 .division = Division{.dim = dims - 1, .blocks = b.division->blocks},
                 .ranks = b.ranks};
}

/// Columns of the first factor meet rows of the second.
std::optional<Operand> product_by_addends(const Operand& a, const Operand& b) {
  if (!b.is_divided_along(b.dims() - 2)) return {};
  const Division columns{.dim = a.dims() - 1, .blocks = b.division->blocks};
  if (b.dims() > 2 && a.division != columns) return {};
  const auto factor = beside(a, columns, a.dims(), b.ranks);
  return Operand{.tensor = parallel::sum(at::matmul(factor, b.tensor), b.ranks)};
}

void give(OperatorCall& call, Operand result) {
  if (result.division) return call.give_divided(std::move(result.tensor), *result.division, result.ranks);
  call.give(std::move(result.tensor));
}

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

}  // namespace

std::optional<Operand> product(const Operand& a, const Operand& b) {
  if (a.dims() < 2 || b.dims() < 2) return {};
  const auto dims = std::max(a.dims(), b.dims());
  if (auto result = product_by_batch(a, b, dims)) return result;
  if (auto result = product_by_columns(a, b, dims)) return result;
  if (auto result = product_by_addends(a, b)) return result;
  return product_by_rows(a, b, dims);
}

bool matmul(OperatorCall& call) {
  auto result = product(call.operand(0), call.operand(1));
  if (!result) return false;
  give(call, std::move(*result));
  return true;
}

bool linear(OperatorCall& call) {
  const auto x = call.operand(0), weight = call.operand(1), bias = call.operand(2);
  if (x.dims() < 1 || weight.dims() != 2) return false;
  const auto last = x.dims() - 1;
  if (weight.is_divided_along(0)) {
    const Division columns{.dim = last, .blocks = weight.division->blocks};
    const auto own_bias = beside(bias, {.dim = 0, .blocks = columns.blocks}, 1, weight.ranks);
    call.give_divided(at::linear(spread(x.whole(), weight.ranks), weight.tensor, optional(own_bias)), columns,
                      weight.ranks);
    return true;
  }
  if (weight.is_divided()) {
    const auto own = beside(x, {.dim = last, .blocks = weight.division->blocks}, x.dims(), weight.ranks);
    const auto result = parallel::sum(at::linear(own, weight.tensor), weight.ranks);
    // Under autocast the product has a narrower type, which the result keeps.
    call.give(bias.tensor.defined() ? result + bias.whole().to(result.scalar_type()) : result);
    return true;
  }
  if (!x.is_divided() || x.is_divided_along(last)) return false;
  const auto own_bias = bias.tensor.defined() ? spread(bias.whole(), x.ranks) : at::Tensor();
  call.give_divided(at::linear(x.tensor, spread(weight.tensor, x.ranks), optional(own_bias)), *x.division, x.ranks);
  return true;
}

// addmm(bias, a, b) and baddbmm: beta bias + alpha a b.
bool addmm(OperatorCall& call) {
  const auto bias = call.operand(0), a = call.operand(1), b = call.operand(2);
  const auto beta = call.argument(3).toScalar(), alpha = call.argument(4).toScalar();
  const bool is_sum = beta.equal(1) && alpha.equal(1);
  if (is_sum && a.dims() == 2 && b.is_divided_along(1)) {
    const Division columns{.dim = 1, .blocks = b.division->blocks};
    call.give_divided(at::addmm(beside(bias, columns, 2, b.ranks), spread(a.whole(), b.ranks), b.tensor), columns,
                      b.ranks);
    return true;
  }
  auto result = product(a, b);
  if (!result) return false;
  if (is_sum) {
    give(call, plus(*result, bias));
    return true;
  }
  auto scaled_bias = bias;
  result->tensor = result->tensor * alpha;
  if (beta.equal(0)) {  // then the operator does not read it, whatever it holds
    give(call, std::move(*result));
    return true;
  }
  scaled_bias.tensor = scaled_bias.tensor * beta;
  give(call, plus(*result, scaled_bias));
  return true;
}

}  // namespace hortator::parallel::rules
