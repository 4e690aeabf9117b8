#include "parallel/experts/routing.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace hortator::parallel {
namespace {

std::vector<std::int64_t> on_host(const at::Tensor& numbers) {
  const auto here = numbers.to(at::kCPU, at::kLong).contiguous();
  const auto* begin = here.const_data_ptr<std::int64_t>();
  return {begin, begin + here.numel()};
}

}  // namespace

nn::Routing route(const at::Tensor& logits, const nn::MoEOptions& options) {
  nn::Routing routing{.logits = logits};
  const auto type = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  routing.probabilities = at::softmax(logits, -1, type);
  std::tie(routing.weights, routing.chosen) = at::topk(routing.probabilities, options.top_k, -1);
  if (options.normalise) routing.weights = routing.weights / routing.weights.sum(-1, /*keepdim=*/true);
  return routing;
}

std::optional<std::int64_t> capacity_of(const nn::MoEOptions& options, std::int64_t tokens) {
  if (!options.capacity_factor) return std::nullopt;
  const auto even = static_cast<double>(options.top_k * tokens) / static_cast<double>(options.experts);
  const auto capacity = std::ceil(*options.capacity_factor * even);
  if (capacity >= static_cast<double>(tokens)) return std::nullopt;  // an expert gets a token once
  return static_cast<std::int64_t>(capacity);
}

Assignment assign(const at::Tensor& chosen, std::int64_t experts, std::optional<std::int64_t> capacity) {
  const at::NoGradGuard no_grad;
  const auto expert_of = chosen.t().reshape({-1});  // by the number of the choice
  const auto [sorted, order] = expert_of.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  Assignment assignment{.choices = order, .counts = on_host(at::bincount(expert_of, {}, experts))};
  if (!capacity || std::ranges::all_of(assignment.counts, [&](std::int64_t count) { return count <= *capacity; }))
    return assignment;
  std::vector<std::int64_t> begins(assignment.counts.size());
  std::exclusive_scan(assignment.counts.begin(), assignment.counts.end(), begins.begin(), std::int64_t{0});
  const auto begin_of = at::tensor(begins, chosen.options()).index_select(0, sorted);
  const auto position = at::arange(order.numel(), order.options()) - begin_of;  // among those of the expert
  assignment.choices = order.masked_select(position < *capacity);
  for (auto& count : assignment.counts) count = std::min(count, *capacity);
  return assignment;
}

// Each choice has a row of its own, so that the sum has one order.
at::Tensor combined(const at::Tensor& outputs, const at::Tensor& choices, const at::Tensor& weights) {
  const auto count = weights.size(0), top_k = weights.size(1);
  const auto by_choice = at::zeros({top_k * count, outputs.size(-1)}, outputs.options().requires_grad(false))
                             .index_copy(0, choices, outputs)
                             .view({top_k, count, outputs.size(-1)});
  return (by_choice * weights.t().unsqueeze(-1)).sum(0);
}

}  // namespace hortator::parallel
