// Operators that take tensors apart and join them.

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "parallel/tensor/copy_views.hpp"
#include "parallel/tensor/rules/rules.hpp"

namespace hortator::parallel::rules {
namespace {

bool give_list(OperatorCall& call, const std::vector<at::Tensor>& parts, const std::vector<Division>& divisions,
               const SharedRanks& ranks) {
  std::vector<at::Tensor> divided;
  for (std::size_t i = 0; i < parts.size(); ++i) divided.push_back(divided_tensor(parts[i], divisions[i], ranks));
  call.give(divided);
  return true;
}

/// Splits along `dim` into pieces of these whole sizes.
bool split_into(OperatorCall& call, Sizes sizes, std::int64_t dim) {
  const auto self = call.operand(0);
  std::vector<Division> divisions(sizes.size(), *self.division);
  if (self.is_divided_along(dim)) {
    const auto size = self.whole_sizes()[static_cast<std::size_t>(dim)];
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto piece = after_slice(size, *self.division, begin, begin + sizes[i]);
      if (!piece) return false;
      divisions[i] = *piece;
      begin += sizes[i];
      sizes[i] = (sizes[i] + piece->padding) / self.ranks->size();
    }
    if (begin != size) return false;
  }
  return give_list(call, at::split_with_sizes(self.tensor, sizes, dim), divisions, self.ranks);
}

/// The division of the tensors joined along `dim`; nothing if their parts joined are not the part of the result.
std::optional<Division> joined(const std::vector<Operand>& operands, std::int64_t dim) {
  const auto first = std::ranges::find_if(operands, &Operand::is_divided);
  auto division = *first->division;
  if (division.dim != dim) return division;
  const auto block_of = [&](const Operand& one) { return one.tensor.size(dim) / one.division->blocks; };
  division.blocks = 0;
  for (const auto& one : operands) {
    if (!one.is_divided_along(dim) || block_of(one) != block_of(*first) || one.division->padding > 0) return {};
    division.blocks += one.division->blocks;
  }
  return division;
}

/// One element of the divided dimension, whole on each rank. The rank that has it sends it; a write into it would be
/// lost.
bool select_of_owner(OperatorCall& call, const Operand& self) {
  const auto dim = self.division->dim, size = self.whole_sizes()[static_cast<std::size_t>(dim)];
  const auto position = from_front(call.integer(2), size), part = self.tensor.size(dim);
  if (self.division->blocks != 1 || position < 0 || position >= size || self.ranks->is_trial()) return false;
  const auto own = self.tensor.select(dim, position % part);
  const bool is_other = position / part != self.ranks->index();
  const auto sent = own.masked_fill(at::full({}, is_other, own.options().dtype(at::kBool)), 0);
  const auto whole = parallel::sum(sent, self.ranks);  // with a graph on all ranks, or on none
  mark_copy_view(whole, self.tensor);
  call.give(whole);
  return true;
}

}  // namespace

bool select(OperatorCall& call) {
  const auto self = call.operand(0);
  const auto dim = from_front(call.integer(1), self.dims());
  if (self.is_divided_along(dim)) return select_of_owner(call, self);
  auto division = *self.division;
  if (dim < division.dim) --division.dim;
  call.give_divided(self.tensor.select(dim, call.integer(2)), division, self.ranks);
  return true;
}

bool slice(OperatorCall& call) {
  const auto self = call.operand(0);
  const auto dim = from_front(call.integer(1), self.dims());
  const auto begin = call.optional_integer(2), end = call.optional_integer(3);
  const auto step = call.integer(4);
  if (!self.is_divided_along(dim)) {
    call.give_divided(at::slice(self.tensor, dim, begin, end, step), *self.division, self.ranks);
    return true;
  }
  const auto size = self.whole_sizes()[static_cast<std::size_t>(dim)];
  const auto position = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size); };
  const auto from = position(begin.value_or(0));
  const auto to = position(end.value_or(std::numeric_limits<std::int64_t>::max()));
  const auto division = step == 1 ? after_slice(size, *self.division, from, to) : std::nullopt;
  if (!division) return false;
  const auto ranks = self.ranks->size();
  const auto end_of_part = (to + division->padding) / ranks;
  call.give_divided(at::slice(self.tensor, dim, from / ranks, end_of_part), *division, self.ranks);
  return true;
}

bool index_select(OperatorCall& call) {
  const auto self = call.operand(0);
  const auto dim = from_front(call.integer(1), self.dims());
  if (!self.is_divided() || self.is_divided_along(dim)) return false;
  call.give_divided(at::index_select(self.tensor, dim, call.operand(2).whole()), *self.division, self.ranks);
  return true;
}

bool split(OperatorCall& call) {
  const auto self = call.operand(0);
  const auto dim = from_front(call.integer(2), self.dims());
  const auto size = self.whole_sizes()[static_cast<std::size_t>(dim)], piece = call.integer(1);
  if (piece <= 0) return false;
  Sizes sizes;
  for (std::int64_t begin = 0; begin < size; begin += piece) sizes.push_back(std::min(piece, size - begin));
  return split_into(call, sizes, dim);
}

bool split_with_sizes(OperatorCall& call) {
  return split_into(call, call.integers(1), from_front(call.integer(2), call.argument(0).toTensor().dim()));
}

bool unbind(OperatorCall& call) {
  const auto self = call.operand(0);
  const auto dim = from_front(call.integer(1), self.dims());
  if (self.is_divided_along(dim)) return false;
  auto division = *self.division;
  if (dim < division.dim) --division.dim;
  const auto parts = at::unbind(self.tensor, dim);
  return give_list(call, parts, std::vector<Division>(parts.size(), division), self.ranks);
}

bool cat(OperatorCall& call) {
  const auto operands = call.operands(0);
  const auto dims = operands.front().dims();
  const auto same_dims = [&](const Operand& one) { return one.dims() == dims; };
  if (!std::ranges::all_of(operands, same_dims)) return false;  // LibTorch leaves out empty tensors of one dimension
  const auto dim = from_front(call.integer(1), dims);
  const auto division = joined(operands, dim);
  if (!division) return false;
  const auto ranks = std::ranges::find_if(operands, &Operand::is_divided)->ranks;
  std::vector<at::Tensor> parts;
  for (const auto& one : operands)
    parts.push_back(division->dim == dim ? one.tensor : beside(one, *division, dims, ranks));
  call.give_divided(at::cat(parts, dim), *division, ranks);
  return true;
}

bool stack(OperatorCall& call) {
  const auto operands = call.operands(0);
  const auto first = std::ranges::find_if(operands, &Operand::is_divided);
  const auto dim = from_front(call.integer(1), first->dims() + 1);
  std::vector<at::Tensor> parts;
  for (const auto& one : operands) parts.push_back(beside(one, *first->division, first->dims(), first->ranks));
  auto division = *first->division;
  if (dim <= division.dim) ++division.dim;
  call.give_divided(at::stack(parts, dim), division, first->ranks);
  return true;
}

}  // namespace hortator::parallel::rules
