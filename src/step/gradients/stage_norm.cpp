#include "step/gradients/stage_norm.hpp"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>

#include "step/tensor_set.hpp"

namespace hortator::step {
namespace {

std::vector<at::Tensor> distinct(const std::vector<at::Tensor>& parameters) {
  TensorSet seen;
  std::vector<at::Tensor> each;
  std::ranges::copy_if(parameters, std::back_inserter(each),
                       [&](const auto& one) { return seen.insert(one.unsafeGetTensorImpl()).second; });
  return each;
}

/// A number of each parameter, which one rank has; the others have 0, so that sums are exact. @collective
at::Tensor shared(const at::Tensor& numbers, const at::Tensor& on_device_of, comm::Communicator& stages) {
  auto all = numbers.to(on_device_of.device());
  stages.all_reduce(all, comm::ReduceOp::sum).wait();
  return all.cpu();
}

/// The parameters with a gradient, in the order of their groups by type: that of the first of each.
std::vector<std::size_t> order_of(const std::vector<at::Tensor>& parameters, const at::Tensor& have_gradients) {
  std::vector<std::size_t> order;
  std::vector<at::ScalarType> types;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (have_gradients[static_cast<std::int64_t>(i)].item<double>() == 0) continue;
    order.push_back(i);
    const auto type = parameters[i].scalar_type();
    if (std::ranges::find(types, type) == types.end()) types.push_back(type);
  }
  std::ranges::stable_sort(
      order, {}, [&](std::size_t i) { return std::ranges::find(types, parameters[i].scalar_type()) - types.begin(); });
  return order;
}

}  // namespace

at::Tensor total_norm_in_order(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& counted,
                               double norm_type, comm::Communicator& stages) {
  const auto each = distinct(parameters);
  const auto mine = tensor_set(counted);
  const auto count = static_cast<std::int64_t>(each.size());
  const auto is_mine = [&](const at::Tensor& one) {
    return mine.contains(one.unsafeGetTensorImpl()) && one.grad().defined() && one.grad().numel() > 0;
  };
  auto have_gradients = at::zeros({count}, at::kDouble), norms = at::zeros({count}, at::kDouble);
  for (std::int64_t i = 0; i < count; ++i) have_gradients[i] = is_mine(each[static_cast<std::size_t>(i)]) ? 1 : 0;
  if (each.empty()) return at::zeros({});
  have_gradients = shared(have_gradients, each.front(), stages);
  const auto order = order_of(each, have_gradients);
  const bool any_double = std::ranges::any_of(order, [&](auto i) { return each[i].scalar_type() == at::kDouble; });
  const auto type = any_double ? at::kDouble : at::kFloat;
  for (const auto i : order) {
    if (!is_mine(each[i])) continue;
    const auto computed_in = at::isComplexType(each[i].scalar_type()) ? std::nullopt : std::optional(type);
    norms[static_cast<std::int64_t>(i)] =
        at::_foreach_norm({each[i].grad().detach()}, norm_type, computed_in).front().to(at::kCPU, type);
  }
  norms = shared(norms, each.front(), stages).to(type);
  if (order.empty()) return at::zeros({}, type);
  std::vector<at::Tensor> ordered;
  for (const auto i : order) ordered.push_back(norms[static_cast<std::int64_t>(i)]);
  return at::linalg_vector_norm(at::stack(ordered), norm_type).to(each.front().device());
}

}  // namespace hortator::step
