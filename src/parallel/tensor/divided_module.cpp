#include "parallel/tensor/divided_module.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <set>
#include <utility>

#include "core/text/text.hpp"
#include "parallel/tensor/interception.hpp"
#include "parallel/tensor/plan.hpp"

namespace hortator::parallel {
namespace {

/// Each parameter under all of its names.
std::vector<std::pair<std::string, at::Tensor>> all_names(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const auto& item : module.named_parameters()) all.emplace_back(item.key(), item.value());
  return all;
}

std::vector<PlannedParameter> planned(const std::vector<std::pair<std::string, at::Tensor>>& all) {
  std::vector<PlannedParameter> parameters;
  for (const auto& [name, tensor] : all)
    parameters.push_back({.name = name, .sizes = tensor.sizes().vec(), .identity = tensor.unsafeGetTensorImpl()});
  return parameters;
}

void require_undivided(const std::vector<std::pair<std::string, at::Tensor>>& all) {
  for (const auto& [name, tensor] : all) {
    if (!is_divided(tensor)) continue;
    throw UsageError({.what = text::concat("The parameter ", text::quote(name), " is divided among ranks already"),
                      .why = "another prepared model has it",
                      .hint = "prepare the module that contains both"});
  }
}

}  // namespace

DividedModule::DividedModule(torch::nn::Module& module, const TensorPlan& plan, SharedRanks ranks)
    : ranks_(std::move(ranks)) {
  start_division();
  const auto all = all_names(module);
  require_undivided(all);
  const auto divisions = divisions_by_plan(plan, planned(all), ranks_->size());
  const at::NoGradGuard no_grad;
  std::set<const void*> done;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [name, tensor] = all[i];
    if (!divisions[i] || !done.insert(tensor.unsafeGetTensorImpl()).second) continue;
    tensor.set_data(ranks_->part_of(tensor, *divisions[i]));
    parameters_.push_back({.name = name, .parameter = tensor, .division = *divisions[i]});
  }
  mark();
}

const DividedModule::DividedParameter* DividedModule::find(const at::Tensor& parameter) const {
  const auto found =
      std::ranges::find_if(parameters_, [&](const auto& one) { return one.parameter.is_same(parameter); });
  return found == parameters_.end() ? nullptr : &*found;
}

void DividedModule::mark() const {
  for (const auto& one : parameters_) mark_divided(one.parameter, one.division, ranks_);
}

void DividedModule::restore() const {
  const at::NoGradGuard no_grad;
  for (const auto& one : parameters_) {
    auto& gradient = one.parameter.mutable_grad();
    auto whole_gradient = gradient.defined() ? ranks_->join(gradient, one.division) : at::Tensor();
    gradient.reset();
    unmark_divided(one.parameter);
    one.parameter.set_data(ranks_->join(one.parameter, one.division));
    gradient = std::move(whole_gradient);
  }
}

void DividedModule::lend() {
  const at::NoGradGuard no_grad;
  for (const auto& one : parameters_) {
    unmark_divided(one.parameter);
    lent_.push_back(one.parameter.detach());
    one.parameter.set_data(ranks_->join(one.parameter, one.division));
  }
}

void DividedModule::take_back(bool keep_changes) {
  const at::NoGradGuard no_grad;
  const auto parts = std::exchange(lent_, {});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [name, parameter, division] = parameters_[i];
    if (keep_changes) parts[i].copy_(ranks_->part_of(parameter, division));
    parameter.set_data(parts[i]);
  }
  if (!parts.empty()) mark();
}

TensorPlan plan_of(torch::nn::Module& module) {
  const auto plan_in = [](const torch::nn::Module& one) {
    const auto* planned = dynamic_cast<const HasTensorPlan*>(&one);
    return planned != nullptr ? planned->tensor_plan() : TensorPlan();
  };
  if (auto plan = plan_in(module); !plan.empty()) return plan;
  for (const auto& one : module.modules(/*include_self=*/false)) {
    if (auto plan = plan_in(*one); !plan.empty()) return plan;
  }
  throw UsageError({.what = "The model has no plan by which its weights are divided among tensor ranks",
                    .why = "parallel.tensor is greater than 1, and models do not show which layers belong together",
                    .hint = "set parallel.plan, or derive the module from hortator::HasTensorPlan"});
}

}  // namespace hortator::parallel
