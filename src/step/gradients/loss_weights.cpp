#include "step/gradients/loss_weights.hpp"

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <map>

#include "core/text/text.hpp"
#include "step/gradients/reach_marks.hpp"

namespace hortator::step {
namespace {

// Zero if no rank has summed anything.
at::Tensor factor_of(const at::Tensor& total, double numerator) {
  return at::where(total > 0, numerator / total, at::zeros_like(total));
}

void check_not_joined(const LossWeights::Models& models) {
  for (const auto& model : models) {
    if (!model->may_lack_ranks()) continue;
    throw UsageError({.what = "backward(loss_sum, count) cannot be used within join_uneven_inputs",
                      .why = "ranks without batches do not take part in the sum of the counts",
                      .hint =
                          "give all ranks the same number of batches (DataOptions::even_batches), with a count of 0 "
                          "for repeated samples"});
  }
}

using GradientsByType = std::map<at::ScalarType, std::vector<at::Tensor>>;

GradientsByType gradients_of(const ModelCore& model, TensorSet& seen) {
  GradientsByType gradients;
  for (const auto& parameter : model.gradient_holders()) {
    if (parameter.grad().defined() && seen.insert(parameter.unsafeGetTensorImpl()).second)
      gradients[parameter.grad().scalar_type()].push_back(parameter.grad());
  }
  return gradients;
}

// The factor in the gradients' own type: with another one LibTorch takes a kernel for each tensor.
void multiply(const GradientsByType& gradients, const at::Tensor& factor) {
  for (const auto& [type, tensors] : gradients) at::_foreach_mul_(tensors, factor.to(type));
}

// Within LocalSGD the total is that of the ranks that train one replica.
void check_apart(const LossWeights::Models& models, bool is_whole) {
  const auto is_apart = [](const auto& model) { return model->is_apart(); };
  const auto trains_with_all = [](const auto& model) { return !model->is_apart() && model->sends_gradients(); };
  if (std::ranges::none_of(models, is_apart) || (is_whole && std::ranges::none_of(models, trains_with_all))) return;
  throw UsageError({.what = "backward(loss_sum, count) was called within LocalSGD, in a micro-step or beside a model "
                            "that all ranks train",
                    .why = "the count would be that of other ranks than the gradients'",
                    .hint = "give backward() the mean of the losses"});
}

// Not by LocalSGD, in which the gradients of a rank that trains alone are complete.
bool is_paused(const std::shared_ptr<ModelCore>& model) {
  const bool trains_alone = model->is_apart() && model->sharded() == nullptr;
  return !trains_alone && model->reducer().is_paused();
}

}  // namespace

void LossWeights::run(const at::Tensor& loss_sum, const at::Tensor& count, bool is_last,
                      comm::Communicator& communicator, const Backward& backward) {
  check_not_joined(models_);
  const bool is_whole =
      !shards_ && is_last && pending_.empty() && std::none_of(models_.begin(), models_.end(), is_paused);
  check_apart(models_, is_whole);
  if (is_whole) {
    auto total = count.clone();
    communicator.all_reduce(total, comm::ReduceOp::sum).wait();
    return backward(loss_sum * factor_of(total, communicator.size()).to(loss_sum.scalar_type()));
  }
  choose_divisor(count, communicator);
  const auto before = marks_of(models_);
  backward(loss_sum / divisor_);
  settle_after(before, count, is_last, communicator);
}

void LossWeights::run_late(double expected, bool is_last, comm::Communicator& communicator, c10::Device device,
                           const std::function<at::Tensor(double divisor)>& backward) {
  check_not_joined(models_);
  choose_divisor(at::full({}, expected, at::TensorOptions().dtype(at::kDouble).device(device)), communicator);
  const auto before = marks_of(models_);
  settle_after(before, backward(divisor_), is_last, communicator);
}

void LossWeights::settle_after(const std::vector<ReachMarks>& before, const at::Tensor& count, bool is_last,
                               comm::Communicator& communicator) {
  std::vector<const ModelCore*> reached;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (!before[i].have_changed()) continue;
    add(models_[i], count);
    reached.push_back(models_[i].get());
  }
  if (!is_last || shards_) return;
  settle(
      [&](const auto& pending) {
        return std::find(reached.begin(), reached.end(), pending.model.get()) != reached.end();
      },
      communicator);
}

void LossWeights::run_plain(const at::Tensor& loss, const Backward& backward) const {
  if (pending_.empty()) return backward(loss);
  std::vector<ReachMarks> before;
  for (const auto& pending : pending_) before.emplace_back(*pending.model);
  backward(loss);
  if (std::none_of(before.begin(), before.end(), [](const auto& marks) { return marks.have_changed(); })) return;
  throw UsageError({.what = "backward(loss) was called between micro-steps with backward(loss_sum, count)",
                    .why = "a loss is a mean already, and sums become a mean at the end of the group",
                    .hint = "use the same form for all micro-steps between two updates of a model"});
}

LossWeights::Pending* LossWeights::find(const ModelCore& model) {
  const auto it = std::find_if(pending_.begin(), pending_.end(),
                               [&](const auto& pending) { return pending.model.get() == &model; });
  return it == pending_.end() ? nullptr : &*it;
}

void LossWeights::add(const std::shared_ptr<ModelCore>& model, const at::Tensor& count) {
  if (auto* pending = find(*model)) {
    pending->count += count;
  } else {
    pending_.push_back({.model = model, .count = count.clone()});
  }
}

// A power of two, so that dividing by it and multiplying later is exact. Chosen once. @collective
void LossWeights::choose_divisor(const at::Tensor& count, comm::Communicator& communicator) {
  if (divisor_ > 0) return;
  auto max_count = count.clone();
  communicator.all_reduce(max_count, comm::ReduceOp::max).wait();
  divisor_ = std::exp2(std::round(std::log2(std::max(1.0, max_count.item<double>()))));
}

void LossWeights::settle(comm::Communicator& communicator) {
  settle([](const auto&) { return true; }, communicator);
}

// One reduction for all counts. Paused models keep their counts. @collective
void LossWeights::settle(const Condition& is_chosen, comm::Communicator& communicator) {
  const at::NoGradGuard no_grad;
  const auto is_complete = [&](const auto& pending) { return is_chosen(pending) && !is_paused(pending.model); };
  std::vector<Pending> complete;
  for (const auto& model : models_) {
    if (const auto* pending = find(*model); pending != nullptr && is_complete(*pending)) complete.push_back(*pending);
  }
  if (complete.empty()) return;
  std::vector<at::Tensor> counts;
  for (const auto& pending : complete) counts.push_back(pending.count);
  auto totals = at::stack(counts);
  communicator.all_reduce(totals, comm::ReduceOp::sum).wait();
  const auto factors = factor_of(totals, divisor_ * shards_.value_or(communicator.size()));
  TensorSet seen;
  for (std::size_t i = 0; i < complete.size(); ++i) {
    multiply(gradients_of(*complete[i].model, seen), factors[static_cast<std::int64_t>(i)]);
  }
  std::erase_if(pending_, is_complete);
}

void LossWeights::forget(const std::vector<at::Tensor>& parameters) {
  if (pending_.empty()) return;
  TensorSet cleared;
  for (const auto& parameter : parameters) cleared.insert(parameter.unsafeGetTensorImpl());
  std::erase_if(pending_, [&](const auto& pending) {
    const auto own = pending.model->module().parameters();
    return std::any_of(own.begin(), own.end(),
                       [&](const auto& parameter) { return cleared.contains(parameter.unsafeGetTensorImpl()); });
  });
}

}  // namespace hortator::step
