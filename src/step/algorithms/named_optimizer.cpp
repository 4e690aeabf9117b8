#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <hortator/error.hpp>
#include <hortator/training/named_optimizer.hpp>

#include "core/text/text.hpp"
#include "step/moments/moment_layout.hpp"

namespace hortator {
namespace {

at::Tensor first_moment(const std::string& name, const at::Tensor& parameter) {
  using step::MomentLayout;
  switch (step::moment_layout(name)) {
    case MomentLayout::elements:
      return at::zeros_like(parameter);
    case MomentLayout::bytes:
      return at::zeros(parameter.sizes(), parameter.options().dtype(at::kByte).requires_grad(false));
    case MomentLayout::blocks:
      return at::zeros({step::blocks_of(parameter.numel())},
                       parameter.options().dtype(at::kFloat).requires_grad(false));
    case MomentLayout::whole:
      break;
  }
  return {};
}

NamedOptions& options_of(torch::optim::OptimizerParamGroup& group) {
  auto* const options = dynamic_cast<NamedOptions*>(&group.options());
  if (options != nullptr) return *options;
  throw UsageError({.what = "A parameter group has the options of another optimizer",
                    .why = "the optimizer reads its options by name",
                    .hint = "give the group named() of this optimizer's options"});
}

// torch::optim gives a group with options of a type of ours the defaults instead.
void keep_options(const torch::optim::OptimizerParamGroup& given, torch::optim::OptimizerParamGroup& group) {
  if (given.has_options()) group.set_options(given.options().clone());
  options_of(group);
}

}  // namespace

ElementwiseOptimizer::~ElementwiseOptimizer() = default;
TrainEvalOptimizer::~TrainEvalOptimizer() = default;

NamedOptions::NamedOptions(Numbers numbers, std::vector<std::string> moments, std::vector<std::string> scalars)
    : numbers_(std::move(numbers)), moments_(std::move(moments)), scalars_(std::move(scalars)) {}

double NamedOptions::get(std::string_view name) const {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [option, value] : numbers_) known.push_back(option);
  throw UsageError({.what = text::concat("The optimizer has no option '", name, "'"),
                    .hint = text::concat("its options are ", text::join(known))});
}

void NamedOptions::set(std::string_view name, double value) {
  get(name);
  numbers_.find(name)->second = value;
}

NamedOptimizer::NamedOptimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                               const NamedOptions& defaults)
    : Optimizer(groups, std::make_unique<NamedOptions>(defaults)) {
  for (std::size_t g = 0; g < groups.size(); ++g) keep_options(groups[g], param_groups()[g]);
}

void NamedOptimizer::add_param_group(const torch::optim::OptimizerParamGroup& group) {
  Optimizer::add_param_group(group);
  keep_options(group, param_groups().back());
}

at::Tensor NamedOptimizer::step(LossClosure closure) {
  const auto loss = closure ? closure() : at::Tensor();
  const at::NoGradGuard no_grad;
  for (auto& group : param_groups()) {
    begin_group(options_of(group));
    step_group(group);
  }
  return loss;
}

void NamedOptimizer::step_group(torch::optim::OptimizerParamGroup& group) {
  const auto& options = options_of(group);
  for (auto& parameter : group.params()) {
    const auto& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    require_dense(gradient);
    auto& state = state_of(parameter, options);
    ++state.step;
    update(parameter, gradient, state, options);
  }
}

MomentState& NamedOptimizer::state_of(const at::Tensor& parameter, const NamedOptions& options) {
  auto& slot = state()[parameter.unsafeGetTensorImpl()];
  if (slot == nullptr) slot = std::make_unique<MomentState>();
  auto& state = static_cast<MomentState&>(*slot);
  for (const auto& name : options.moments()) {
    if (auto& moment = state.moments[name]; !moment.defined()) moment = first_moment(name, parameter);
  }
  return state;
}

void NamedOptimizer::require_dense(const at::Tensor& gradient) {
  if (!gradient.is_sparse()) return;
  throw UsageError({.what = "A gradient is sparse",
                    .why = "this optimizer's moments are dense",
                    .hint = "make the embedding with sparse(false)"});
}

}  // namespace hortator
