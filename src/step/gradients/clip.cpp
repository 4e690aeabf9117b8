#include "step/gradients/clip.hpp"

#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::step {
namespace {

at::ScalarType type_of_norm(const std::vector<GradientGroup>& groups) {
  const bool any_double =
      std::any_of(groups.begin(), groups.end(), [](const auto& group) { return group.type == at::kDouble; });
  return any_double ? at::kDouble : at::kFloat;
}

}  // namespace

at::Tensor total_norm(const std::vector<GradientGroup>& groups, double norm_type) {
  const auto type = type_of_norm(groups);
  if (groups.empty()) return at::zeros({}, type);
  std::vector<at::Tensor> norms;
  for (const auto& group : groups) {
    const auto computed_in = at::isComplexType(group.type) ? std::nullopt : std::optional(type);
    for (const auto& norm : at::_foreach_norm(group.gradients, norm_type, computed_in)) {
      norms.push_back(norm.to(groups.front().device, type));
    }
  }
  return at::linalg_vector_norm(at::stack(norms), norm_type);
}

// As in torch, 1e-6 avoids a division by zero.
void scale_to_norm(const std::vector<GradientGroup>& groups, const at::Tensor& total, double max_norm) {
  const auto factor = at::clamp_max(max_norm / (total + 1e-6), 1.0);
  // On the CPU the factor is known, and usually there is nothing to do.
  if (factor.is_cpu() && factor.item<double>() == 1.0) return;
  for (const auto& group : groups) {
    const auto type = at::isReducedFloatingType(group.type) ? at::kFloat : group.type;
    at::_foreach_mul_(group.gradients, factor.to(group.device, type));
  }
}

void clamp(const std::vector<GradientGroup>& groups, double limit) {
  for (const auto& group : groups) {
    at::_foreach_clamp_min_(group.gradients, -limit);
    at::_foreach_clamp_max_(group.gradients, limit);
  }
}

void check_limit(double limit, const char* what) {
  if (limit >= 0) return;
  throw UsageError({.what = text::concat(what, " is ", limit),
                    .why = "a negative limit would reverse gradients",
                    .hint = "use a number of at least 0; infinity clips nothing"});
}

}  // namespace hortator::step
