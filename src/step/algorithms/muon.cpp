#include <ATen/ops/addmm.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <hortator/error.hpp>
#include <hortator/training/optimizers.hpp>

#include "core/text/text.hpp"

namespace hortator {
namespace {

constexpr int max_iterations = 99;

/// A matrix with the same singular vectors whose singular values are near 1, in bfloat16: Newton-Schulz iterations of
/// fifth order.
at::Tensor orthogonalized(const at::Tensor& matrix, const NamedOptions& options) {
  const double a = options.get("ns_a"), b = options.get("ns_b"), c = options.get("ns_c");
  const bool is_tall = matrix.size(0) > matrix.size(1);
  auto x = matrix.to(at::kBFloat16, /*non_blocking=*/false, /*copy=*/true);
  if (is_tall) x = x.t();
  x.div_(x.norm().clamp_min_(options.get("eps")));
  for (int i = 0; i < static_cast<int>(options.get("ns_steps")); ++i) {
    const auto gram = at::matmul(x, x.t());
    x = at::addmm(x, at::addmm(gram, gram, gram, b, c), x, a);
  }
  return is_tall ? x.t() : x;
}

double adjusted_rate(const std::vector<std::int64_t>& sizes, const NamedOptions& options) {
  const auto rows = static_cast<double>(sizes[0]), columns = static_cast<double>(sizes[1]);
  const bool matches_adamw = options.get("adjustment") == static_cast<double>(MuonRate::match_rms_adamw);
  return options.get_lr() *
         (matches_adamw ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns)));
}

void require_matrix(const std::vector<std::int64_t>& sizes) {
  if (sizes.size() == 2) return;
  throw UsageError({.what = text::concat("Muon got a parameter of sizes [", text::join(sizes), "]"),
                    .why = "it orthogonalizes updates of matrices",
                    .hint = "give it the weights of hidden layers, and the other parameters to AdamW"});
}

}  // namespace

NamedOptions MuonOptions::named() const {
  return NamedOptions({{"lr", lr},
                       {"weight_decay", weight_decay},
                       {"momentum", momentum},
                       {"nesterov", nesterov ? 1 : 0},
                       {"ns_a", ns_coefficients[0]},
                       {"ns_b", ns_coefficients[1]},
                       {"ns_c", ns_coefficients[2]},
                       {"eps", eps},
                       {"ns_steps", ns_steps},
                       {"adjustment", static_cast<double>(rate)}},
                      {"momentum_buffer"});
}

Muon::Muon(const std::vector<torch::optim::OptimizerParamGroup>& groups, const MuonOptions& defaults)
    : SlicedOptimizer(groups, defaults.named()) {
  check();
}

Muon::Muon(std::vector<at::Tensor> parameters, const MuonOptions& defaults)
    : SlicedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults.named()) {
  check();
}

void Muon::check() {
  for (const auto& group : param_groups()) {
    for (const auto& parameter : group.params()) require_matrix(parameter.sizes().vec());
    const auto steps = dynamic_cast<const NamedOptions&>(group.options()).get("ns_steps");
    if (steps >= 0 && steps <= max_iterations) continue;
    throw UsageError({.what = text::concat("Muon's ns_steps is ", steps),
                      .why = "it is the number of iterations for each matrix and step",
                      .hint = text::concat("use at most ", max_iterations, "; 5 are usual")});
  }
}

void Muon::step_parameters(std::vector<SteppedParameter>& parameters, const NamedOptions& options,
                           const ParameterSlices& slices) {
  std::vector<at::Tensor> whose, updates;
  for (auto& [parameter, gradient, state, slice] : parameters) {
    require_matrix(slice.sizes);
    auto& momentum = state.moments["momentum_buffer"].lerp_(gradient, 1 - options.get("momentum"));
    whose.push_back(parameter);
    updates.push_back(options.get("nesterov") != 0 ? gradient.lerp(momentum, options.get("momentum"))
                                                   : momentum.clone());
  }
  slices.apply_to_whole(whose, updates, at::kBFloat16,
                        [&](const at::Tensor& matrix) { return orthogonalized(matrix, options); });
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto& parameter = parameters[i].parameter;
    parameter.mul_(1 - options.get_lr() * options.get("weight_decay"));
    parameter.add_(updates[i], -adjusted_rate(parameters[i].slice.sizes, options));
  }
}

}  // namespace hortator
