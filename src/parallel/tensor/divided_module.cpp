#include "parallel/tensor/divided_module.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <set>
#include <span>
#include <utility>

#include "core/text/text.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/storage_memory.hpp"
#include "interception/weight_operators.hpp"
#include "mpi/collectives.hpp"
#include "parallel/pipeline/staged_module.hpp"
#include "parallel/tensor/interception.hpp"
#include "parallel/tensor/joint_work.hpp"
#include "parallel/tensor/pickling.hpp"
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
    if (interception::is_packed(tensor)) {
      throw UsageError({.what = text::concat("The weight ", text::quote(name),
                                             " was packed by quantise(), and the model is to be divided among ranks"),
                        .why = "packed weights are not divided by parallel.tensor and parallel.experts",
                        .hint = "leave out one of the two"});
    }
    if (!is_divided(tensor)) continue;
    throw UsageError({.what = text::concat("The parameter ", text::quote(name), " is divided among ranks already"),
                      .why = "another prepared model has it",
                      .hint = "prepare the module that contains both"});
  }
}

// Versions of LibTorch have different weak pointers.
template <typename Weak>
void reset_accumulator(void (*set)(const torch::autograd::Variable&, Weak), const at::Tensor& parameter) {
  set(parameter, Weak(decltype(torch::autograd::impl::try_get_grad_accumulator(parameter))()));
}

/// Gives a parameter memory of other sizes. The graph of an earlier forward pass may keep the node that accumulates its
/// gradient, which expects the former sizes: later passes get another one.
void resize(const at::Tensor& parameter, const at::Tensor& memory) {
  parameter.set_data(memory);
  if (parameter.requires_grad()) reset_accumulator(torch::autograd::impl::set_grad_accumulator, parameter);
}

/// A tensor of these sizes without memory. Operators that read it throw.
at::Tensor without_values(const Sizes& sizes, const at::Tensor& like) {
  auto tensor = at::empty({0}, like.options().requires_grad(false));
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(sizes);
  tensor.storage().unsafeGetStorageImpl()->set_nbytes(static_cast<std::size_t>(tensor.numel()) * tensor.element_size());
  interception::take_memory(tensor.storage(), "A parameter that is divided among ranks has no values yet");
  interception::add_key(tensor);
  return tensor;
}

}  // namespace

void DividedModule::check_undivided(const torch::nn::Module& module) { require_undivided(all_names(module)); }

void DividedModule::check(const torch::nn::Module& module, const TensorPlan& plan, int ranks) {
  const auto all = all_names(module);
  require_undivided(all);
  divisions_by_plan(plan, planned(all), ranks);
}

DividedModule::DividedModule(torch::nn::Module& module, const TensorPlan& plan, SharedRanks ranks, const Settle& settle)
    : ranks_(std::move(ranks)) {
  start_division();
  const auto all = all_names(module);
  require_undivided(all);
  divide(all, divisions_by_plan(plan, planned(all), ranks_->size()), settle);
}

DividedModule::DividedModule(torch::nn::Module& module, const std::vector<at::Tensor>& parameters,
                             const Division& division, SharedRanks ranks, const Settle& settle)
    : ranks_(std::move(ranks)) {
  start_division();
  const auto all = all_names(module);
  require_undivided(all);
  std::vector<std::optional<Division>> divisions;
  for (const auto& [name, tensor] : all) {
    const bool is_one = std::ranges::any_of(parameters, [&](const auto& one) { return one.is_same(tensor); });
    divisions.push_back(is_one ? std::optional(division) : std::nullopt);
  }
  divide(all, divisions, settle);
}

void DividedModule::divide(const std::vector<std::pair<std::string, at::Tensor>>& all,
                           const std::vector<std::optional<Division>>& divisions, const Settle& settle) {
  const at::NoGradGuard no_grad;
  std::set<const void*> done;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [name, tensor] = all[i];
    if (!done.insert(tensor.unsafeGetTensorImpl()).second) continue;
    const bool has_values = !settle || settle(tensor);
    if (divisions[i] && !is_of_other_stage(tensor)) divide(name, tensor, *divisions[i], has_values);
  }
  mark();
}

// A gradient from before has the sizes of the whole parameter.
void DividedModule::divide(const std::string& name, const at::Tensor& parameter, const Division& division,
                           bool has_values) {
  auto& gradient = parameter.mutable_grad();
  auto part_of_gradient = gradient.defined() ? ranks_->part_of(gradient, division) : at::Tensor();
  gradient.reset();
  if (!has_values) wholes_.emplace(parameter.unsafeGetTensorImpl(), parameter.detach());
  resize(parameter, has_values ? ranks_->part_of(parameter, division)
                               : without_values(part_sizes(parameter.sizes(), division, ranks_->size()), parameter));
  gradient = std::move(part_of_gradient);
  refuse_pickling(parameter.device().type());
  parameters_.push_back({.name = name, .parameter = parameter, .division = division, .part = parameter.sizes().vec()});
}

void DividedModule::make_part(const at::Tensor& parameter, const std::function<void(const at::Tensor& whole)>& settle) {
  const at::NoGradGuard no_grad;
  const auto whole = wholes_.extract(parameter.unsafeGetTensorImpl()).mapped();
  settle(whole);
  replace_data(parameter, ranks_->part_of(whole, find(parameter)->division));
}

const DividedModule::DividedParameter* DividedModule::find(const at::Tensor& parameter) const {
  const auto found =
      std::ranges::find_if(parameters_, [&](const auto& one) { return one.parameter.is_same(parameter); });
  return found == parameters_.end() ? nullptr : &*found;
}

void DividedModule::mark() const {
  for (const auto& one : parameters_) mark_divided(one.parameter, one.division, ranks_);
}

bool DividedModule::is_part(const DividedParameter& one) const {
  return one.parameter.sizes() == one.part && (ranks_->size() == 1 || is_divided(one.parameter));
}

void DividedModule::check_untouched() const {
  if (is_lent_) return;
  for (const auto& one : parameters_) {
    if (is_part(one)) continue;
    throw UsageError({.what = text::concat("The parameter ", text::quote(one.name),
                                           " was replaced after prepare(), which had divided it among ranks"),
                      .why = "module->to() and set_data() take away that it is a part of the whole parameter",
                      .hint = "move or convert the module before prepare()"});
  }
}

// What some rank has replaced since stays as it is. Where only some ranks have a gradient, that of the others is zero.
void DividedModule::restore(const mpi::Communicator& host) const {
  if (is_lent_ || parameters_.empty()) return;
  const at::NoGradGuard no_grad;
  std::vector<int> on_all;  // two for each parameter, true if they hold on all ranks: it is a part; no gradient
  for (const auto& one : parameters_) {
    on_all.push_back(is_part(one) ? 1 : 0);
    on_all.push_back(one.parameter.grad().defined() ? 0 : 1);
  }
  mpi::all_reduce(host, std::span<int>(on_all), mpi::Op::min);
  exchange_together(host, *ranks_, [&] {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (on_all[2 * i] == 1) restore(parameters_[i], on_all[2 * i + 1] == 0);
  });
}

void DividedModule::restore(const DividedParameter& one, bool with_gradient) const {
  auto& gradient = one.parameter.mutable_grad();
  at::Tensor whole_gradient;
  if (with_gradient) {
    const PartsOnly each_rank_has;
    whole_gradient = ranks_->join(gradient.defined() ? gradient : at::zeros_like(one.parameter), one.division);
  }
  gradient.reset();
  unmark_divided(one.parameter);
  resize(one.parameter, ranks_->join(one.parameter, one.division));
  gradient = std::move(whole_gradient);
}

template <typename Whole>
void DividedModule::lend(const Whole& whole) {
  check_untouched();
  const at::NoGradGuard no_grad;
  is_lent_ = true;
  for (const auto& one : parameters_) {
    unmark_divided(one.parameter);
    lent_.push_back(one.parameter.detach());  // take_back() gives these back, also if the next one throws
    resize(one.parameter, whole(one));
  }
}

void DividedModule::lend_together(const mpi::Communicator& host) {
  mpi::all_or_none(host, [this] { check_untouched(); });
  if (parameters_.empty()) return;
  try {
    exchange_together(host, *ranks_, [this] {
      lend([this](const DividedParameter& one) { return ranks_->join(one.parameter, one.division); });
    });
  } catch (...) {
    take_back(/*keep_changes=*/false);
    throw;
  }
}

void DividedModule::lend_shapes() {
  lend([this](const DividedParameter& one) {
    return at::empty({}, one.parameter.options()).expand(whole_sizes(one.part, one.division, ranks_->size()));
  });
}

void DividedModule::take_back(bool keep_changes) {
  if (!std::exchange(is_lent_, false)) return;
  const at::NoGradGuard no_grad;
  const auto parts = std::exchange(lent_, {});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [name, parameter, division, sizes] = parameters_[i];
    if (keep_changes) parts[i].copy_(ranks_->part_of(parameter, division));
    resize(parameter, parts[i]);
  }
  mark();
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
