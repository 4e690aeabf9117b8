// Operators that give the same elements other sizes.

#include <ATen/ATen.h>

#include <numeric>
#include <utility>

#include "parallel/tensor/rules/rules.hpp"

namespace hortator::parallel::rules {
namespace {

template <typename Change>
bool change_sizes(OperatorCall& call, const Change& change) {
  const auto self = call.operand(0);
  const auto whole = self.whole_sizes();
  const auto elements = std::accumulate(whole.begin(), whole.end(), std::int64_t{1}, std::multiplies<>());
  const auto there = after_view(whole, *self.division, complete_sizes(call.integers(1), elements), self.ranks->size());
  if (!there) return false;
  call.give_divided(change(self.tensor, there->part), there->division, self.ranks);
  return true;
}

bool reorder(OperatorCall& call, const Sizes& order) {
  const auto self = call.operand(0);
  call.give_divided(self.tensor.permute(order), after_permutation(*self.division, order), self.ranks);
  return true;
}

bool swap(OperatorCall& call, std::int64_t first, std::int64_t second) {
  const auto dims = call.argument(0).toTensor().dim();
  Sizes order(static_cast<std::size_t>(dims));
  std::iota(order.begin(), order.end(), 0);
  if (dims > 0)
    std::swap(order[static_cast<std::size_t>(from_front(first, dims))],
              order[static_cast<std::size_t>(from_front(second, dims))]);
  return reorder(call, order);
}

}  // namespace

bool view(OperatorCall& call) {
  return change_sizes(call, [](const at::Tensor& part, const Sizes& sizes) { return part.view(sizes); });
}

bool reshape(OperatorCall& call) {
  return change_sizes(call, [](const at::Tensor& part, const Sizes& sizes) { return part.reshape(sizes); });
}

bool transpose(OperatorCall& call) { return swap(call, call.integer(1), call.integer(2)); }
bool transpose_matrix(OperatorCall& call) {
  const auto dims = call.argument(0).toTensor().dim();
  return dims == 2 ? swap(call, 0, 1) : false;
}
bool permute(OperatorCall& call) { return reorder(call, call.integers(1)); }

bool unsqueeze(OperatorCall& call) {
  const auto self = call.operand(0);
  const auto dim = from_front(call.integer(1), self.dims() + 1);
  auto division = *self.division;
  if (dim <= division.dim) ++division.dim;
  call.give_divided(self.tensor.unsqueeze(dim), division, self.ranks);
  return true;
}

bool squeeze_dim(OperatorCall& call) {
  const auto self = call.operand(0);
  const auto dim = from_front(call.integer(1), self.dims());
  auto division = *self.division;
  if (dim == division.dim) {
    call.give_divided(self.tensor.alias(), division, self.ranks);  // the whole tensor has several elements there
    return true;
  }
  if (dim < division.dim && self.tensor.size(dim) == 1) --division.dim;
  call.give_divided(self.tensor.squeeze(dim), division, self.ranks);
  return true;
}

bool expand(OperatorCall& call) {
  const auto self = call.operand(0);
  auto sizes = call.integers(1);
  const auto division = *aligned(self, static_cast<std::int64_t>(sizes.size()));
  auto& divided = sizes[static_cast<std::size_t>(division.dim)];
  if (divided >= 0) divided = (divided + division.padding) / self.ranks->size();
  call.give_divided(self.tensor.expand(sizes, call.flag(2)), division, self.ranks);
  return true;
}

}  // namespace hortator::parallel::rules
