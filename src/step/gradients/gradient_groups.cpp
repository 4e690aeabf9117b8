#include "step/gradients/gradient_groups.hpp"

#include <algorithm>
#include <unordered_set>

namespace hortator::step {
namespace {

at::Tensor values_of(const at::Tensor& parameter) {
  auto& gradient = parameter.mutable_grad();
  if (!gradient.is_sparse()) return gradient.detach();
  if (!gradient.is_coalesced()) gradient = gradient.coalesce();
  return gradient._values();
}

GradientGroup& group_of(std::vector<GradientGroup>& groups, const at::Tensor& gradient) {
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
    return group.device == gradient.device() && group.type == gradient.scalar_type();
  });
  if (found != groups.end()) return *found;
  return groups.emplace_back(
      GradientGroup{.device = gradient.device(), .type = gradient.scalar_type(), .gradients = {}});
}

}  // namespace

std::vector<GradientGroup> gradient_groups(const std::vector<at::Tensor>& parameters) {
  std::vector<GradientGroup> groups;
  std::unordered_set<const void*> seen;  // Module::parameters() lists tied parameters several times
  seen.reserve(parameters.size());
  for (const auto& parameter : parameters) {
    if (!parameter.grad().defined() || !seen.insert(parameter.unsafeGetTensorImpl()).second) continue;
    auto values = values_of(parameter);
    if (values.numel() > 0) group_of(groups, values).gradients.push_back(std::move(values));
  }
  return groups;
}

}  // namespace hortator::step
