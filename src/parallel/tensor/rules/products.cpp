// Products of matrices. Where columns of a weight are divided, each rank computes its columns of the result; where rows
// are, each rank computes an addend of the result.

#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
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

/// The product with this rank's columns of a matrix. If the input is divided along the sequence, each rank keeps only
/// its part for backward.
at::Tensor times_columns(const Operand& x, const at::Tensor& columns, const SharedRanks& ranks) {
  const bool is_divided_by_tokens = x.dims() > 2 && x.is_divided_along(x.dims() - 2);
  if (x.shared.defined() && columns.dim() == 2 && is_divided_by_tokens) return x.times_shared(columns);
  return at::matmul(x.whole_for_ranks(ranks), columns);
}

std::optional<Operand> product_by_columns(const Operand& a, const Operand& b, std::int64_t dims) {
  if (!b.is_divided_along(b.dims() - 1) || (b.dims() > 2 && a.is_divided())) return {};
  return Operand{
      .tensor = times_columns(a, b.tensor, b.ranks), .division = b.division->along(dims - 1), .ranks = b.ranks};
}

bool has_equal_parts(const at::Tensor& addend, const Division& sequence, const SharedRanks& ranks) {
  if (divides(addend.sizes(), sequence, ranks->size())) return true;
  if (!c10::GradMode::is_enabled()) return false;  // one token of a generated text
  throw UsageError({.what = text::concat("A sequence of ", text::count(addend.size(sequence.dim), "token"),
                                         " cannot be divided among ", ranks->size(), " tensor ranks"),
                    .why = "the plan divides activations along the sequence, and each rank must get an equal part",
                    .hint = "pad the sequence, or leave 'sequence' out of the plan"});
}

/// Columns of the first factor meet rows of the second.
std::optional<Operand> product_by_addends(const Operand& a, const Operand& b) {
  if (!b.is_divided_along(b.dims() - 2)) return {};
  const auto columns = b.division->along(a.dims() - 1);
  if (b.dims() > 2 && a.division != columns) return {};
  const auto factor = beside(a, columns, a.dims(), b.ranks);
  return sum_of_addends(at::matmul(factor, b.tensor), b);
}

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

at::Tensor linear_of_columns(const Operand& x, const Operand& weight, const at::Tensor& bias) {
  if (!x.is_divided()) return at::linear(spread(x.tensor, weight.ranks), weight.tensor, optional(bias));
  const auto product = times_columns(x, weight.tensor.t(), weight.ranks);
  return bias.defined() ? product + bias.to(product.scalar_type()) : product;
}

}  // namespace

Operand sum_of_addends(const at::Tensor& addend, const Operand& weight) {
  const Division sequence{.dim = addend.dim() - 2};
  if (!weight.division->to_sequence || addend.dim() < 3 || !has_equal_parts(addend, sequence, weight.ranks))
    return {.tensor = parallel::sum(addend, weight.ranks)};
  return {.tensor = sum_part(addend, sequence, weight.ranks), .division = sequence, .ranks = weight.ranks};
}

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
  call.give_operand(std::move(*result));
  return true;
}

bool linear(OperatorCall& call) {
  const auto x = call.operand(0), weight = call.operand(1), bias = call.operand(2);
  if (x.dims() < 1 || weight.dims() != 2) return false;
  const auto last = x.dims() - 1;
  if (weight.is_divided_along(0)) {
    const auto columns = weight.division->along(last);
    const auto own_bias = beside(bias, columns.along(0), 1, weight.ranks);
    call.give_divided(linear_of_columns(x, weight, own_bias), columns, weight.ranks);
    return true;
  }
  if (weight.is_divided()) {
    const auto own = beside(x, weight.division->along(last), x.dims(), weight.ranks);
    auto result = sum_of_addends(at::linear(own, weight.tensor), weight);
    // Under autocast the product has a narrower type, which the result keeps.
    if (bias.tensor.defined()) result = plus(result, {.tensor = bias.whole().to(result.tensor.scalar_type())});
    call.give_operand(std::move(result));
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
    const auto columns = b.division->along(1);
    call.give_divided(at::addmm(beside(bias, columns, 2, b.ranks), a.whole_for_ranks(b.ranks), b.tensor), columns,
                      b.ranks);
    return true;
  }
  auto result = product(a, b);
  if (!result) return false;
  if (is_sum) {
    call.give_operand(plus(*result, bias));
    return true;
  }
  auto scaled_bias = bias;
  result->tensor = result->tensor * alpha;
  if (beta.equal(0)) {  // then the operator does not read it, whatever it holds
    call.give_operand(std::move(*result));
    return true;
  }
  scaled_bias.tensor = scaled_bias.tensor * beta;
  call.give_operand(plus(*result, scaled_bias));
  return true;
}

}  // namespace hortator::parallel::rules
