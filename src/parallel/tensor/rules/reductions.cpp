// Sums over a divided dimension are sums over the ranks. Other reductions are local along dimensions that are not
// divided.

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "parallel/tensor/rules/rules.hpp"

namespace hortator::parallel::rules {
namespace {

/// The dimensions that an operator reduces, and whether they stay with one element.
struct Reduced {
  Sizes dims;  ///< counted from the front; all where none is given
  bool keeps = false;

  bool has(std::int64_t dim) const { return std::ranges::find(dims, dim) != dims.end(); }
  Division after(const Division& division) const {
    if (keeps) return division;
    const auto before = std::ranges::count_if(dims, [&](std::int64_t dim) { return dim < division.dim; });
    return division.along(division.dim - before);
  }
};

Reduced reduced_by(const OperatorCall& call, std::int64_t dims) {
  Reduced reduced;
  const auto position = call.find("dim");
  auto given = position ? call.optional_integers(*position) : std::nullopt;
  for (std::int64_t dim = 0; dim < dims; ++dim) {
    const auto is_dim = [&](std::int64_t one) { return from_front(one, dims) == dim; };
    if (!given || given->empty() || std::ranges::any_of(*given, is_dim)) reduced.dims.push_back(dim);
  }
  const auto keepdim = call.find("keepdim");
  reduced.keeps = keepdim ? call.flag(*keepdim) : call.results() == 1 && position.has_value();
  return reduced;
}

at::Tensor add_up(OperatorCall& call, const Operand& x, const Reduced& reduced, bool takes_mean) {
  const auto type = call.optional_type(call.count() - 1);
  const auto of_part = takes_mean ? at::mean(x.tensor, reduced.dims, reduced.keeps, type)
                                  : at::sum(x.tensor, reduced.dims, reduced.keeps, type);
  if (!reduced.has(x.division->dim)) return of_part;
  return parallel::sum(takes_mean ? of_part / x.ranks->size() : of_part, x.ranks);
}

bool add(OperatorCall& call, bool takes_mean) {
  const auto x = call.operand(0);
  auto reduced = reduced_by(call, x.dims());
  if (!call.find("keepdim")) reduced.keeps = false;
  if (x.division->padding > 0 && reduced.has(x.division->dim)) return false;
  auto result = add_up(call, x, reduced, takes_mean);
  if (reduced.has(x.division->dim)) {
    call.give(std::move(result));
  } else {
    call.give_divided(std::move(result), reduced.after(*x.division), x.ranks);
  }
  return true;
}

}  // namespace

bool sum(OperatorCall& call) { return add(call, /*takes_mean=*/false); }
bool mean(OperatorCall& call) { return add(call, /*takes_mean=*/true); }

// Any operator of one tensor that works along its argument "dim", and may have "keepdim".
bool along_dims(OperatorCall& call) {
  const auto x = call.operand(0);
  const auto reduced = reduced_by(call, x.dims());
  if (reduced.has(x.division->dim)) return false;
  const auto division = reduced.after(*x.division);
  call.set(0, x.tensor);
  call.run();
  for (std::size_t i = 0; i < call.results(); ++i)
    call.result(i) = divided_tensor(std::move(call.result(i)).toTensor(), division, x.ranks);
  return true;
}

}  // namespace hortator::parallel::rules
