// An embedding whose rows are divided: the table is never gathered.

#include <ATen/ATen.h>

#include "parallel/tensor/rules/class_numbers.hpp"
#include "parallel/tensor/rules/rules.hpp"

namespace hortator::parallel::rules {

// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
bool embedding(OperatorCall& call) {
  const auto weight = call.operand(0), indices = call.operand(1);
  auto padding = call.integer(2);
  const bool scales = call.flag(3), is_sparse = call.flag(4);
  if (!weight.is_divided()) return false;
  if (weight.is_divided_along(1)) {
    call.give_divided(at::embedding(weight.tensor, indices.whole(), padding, scales, is_sparse),
                      weight.division->along(indices.dims()), weight.ranks);
    return true;
  }
  if (scales || is_sparse || weight.division->blocks != 1) return false;
  const auto ids = indices.whole();
  require_below(ids, weight.whole_sizes()[0], "an embedding");
  const auto rows = weight.tensor.size(0), first = rows * weight.ranks->index();
  padding = padding >= first && padding < first + rows ? padding - first : -1;
  const auto [index, is_other] = own_positions(ids, rows, *weight.ranks);
  const auto own = at::embedding(weight.tensor, index, padding).masked_fill(is_other.unsqueeze(-1), 0);
  call.give_operand(sum_of_addends(own, weight));
  return true;
}

}  // namespace hortator::parallel::rules
