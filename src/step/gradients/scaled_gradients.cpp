#include "step/gradients/scaled_gradients.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdint>
#include <hortator/error.hpp>

#include "step/gradients/gradient_groups.hpp"

namespace hortator::step {
namespace {

at::Tensor one_number(float value, c10::Device device) {
  return at::full({1}, value, at::TensorOptions(device).dtype(at::kFloat));
}

// In double as in torch, so that the inverse is rounded once, to infinity if the scale is near zero.
double inverse(float factor) { return 1.0 / static_cast<double>(factor); }
at::Tensor inverse_of(const at::Tensor& factor) { return factor.to(at::kDouble).reciprocal(); }

// In place.
std::uint64_t count_changes(const std::vector<at::Tensor>& tensors) {
  std::uint64_t count = 0;
  for (const auto& tensor : tensors) {
    const auto& version = tensor.unsafeGetTensorImpl()->version_counter();
    if (version.enabled()) count += version.current_version();
  }
  return count;
}

void refuse_fp16(const GradientGroup& group) {
  if (group.type != at::kHalf) return;
  throw UsageError({.what = "An optimizer's gradients are fp16 with mixed_precision fp16",
                    .why = "they were rounded to fp16 before they could be unscaled, and steps in fp16 lose small ones",
                    .hint = "keep the parameters in fp32; the model still computes in fp16"});
}

}  // namespace

bool ScaledGradients::hold_any_of(const TensorSet& wanted) const {
  const auto mine = holders_();
  return std::any_of(mine.begin(), mine.end(),
                     [&](const at::Tensor& one) { return wanted.contains(one.unsafeGetTensorImpl()); });
}

void ScaledGradients::expect_scaled() {
  now_.checked = false;
  const auto holders = holders_();
  const auto has_gradient = [](const at::Tensor& one) { return one.grad().defined(); };
  if (std::ranges::none_of(holders, has_gradient)) warn_if_stepped();  // cleared without the handle
  changes_ = count_changes(holders);
  if (is_late()) return expect_scaled_on_device();
  const float scale = scaler_.now().scale;
  if (now_.factor != scale) {
    const auto by = static_cast<float>(scale * inverse(now_.factor));
    multiply([by](at::TensorList gradients, c10::Device) { at::_foreach_mul_(gradients, by); });
  }
  now_.factor = scale;
}

void ScaledGradients::warn_if_stepped() {
  const bool are_scaled = is_late() ? now_.factor_on_device.defined() : now_.factor != 1;
  if (are_scaled && count_changes(holders_()) != changes_) scaler_.warn_of_scaled_step();
}

// With late verdicts only the device knows the current scale.
void ScaledGradients::expect_scaled_on_device() {
  const bool is_scaled = now_.factor_on_device.defined();
  if (is_scaled && now_.verdicts == scaler_.verdicts()) return;
  const at::NoGradGuard no_grad;
  const auto& scale = scaler_.scale_on_device();
  const auto by = is_scaled ? (scale.to(at::kDouble) * inverse_of(now_.factor_on_device)).to(at::kFloat) : scale;
  multiply([&by](at::TensorList gradients, c10::Device device) { at::_foreach_mul_(gradients, by.to(device)); });
  now_.factor_on_device = scale.clone();
  now_.verdicts = scaler_.verdicts();
}

void ScaledGradients::multiply(const std::function<void(at::TensorList, c10::Device)>& by) const {
  const at::NoGradGuard no_grad;
  for (const auto& group : gradient_groups(holders_())) by(group.gradients, group.device);
}

void ScaledGradients::unscale() {
  if (now_.checked) return;
  const at::NoGradGuard no_grad;
  for (const auto& group : gradient_groups(holders_())) {
    refuse_fp16(group);
    at::_amp_foreach_non_finite_check_and_unscale_(group.gradients, not_finite_on(group.device),
                                                   inverse_factor(group.device));
  }
  now_.factor = 1;
  now_.factor_on_device.reset();
  now_.checked = true;
}

at::Tensor ScaledGradients::inverse_factor(c10::Device device) const {
  const auto& known = now_.factor_on_device;
  return known.defined() ? inverse_of(known).to(device, at::kFloat)
                         : one_number(static_cast<float>(inverse(now_.factor)), device);
}

at::Tensor& ScaledGradients::not_finite_on(c10::Device device) {
  auto& numbers = now_.not_finite;
  const auto found =
      std::find_if(numbers.begin(), numbers.end(), [&](const at::Tensor& number) { return number.device() == device; });
  return found != numbers.end() ? *found : numbers.emplace_back(one_number(0, device));
}

// The largest of all devices. A rank without gradients returns zero, so that it takes part in the verdict.
at::Tensor ScaledGradients::worst() {
  const auto& numbers = now_.not_finite;
  auto worst = numbers.empty() ? one_number(0, at::kCPU) : numbers.front();
  for (std::size_t i = 1; i < numbers.size(); ++i) worst = at::maximum(worst, numbers[i].to(worst.device()));
  now_.not_finite.clear();
  now_.checked = false;
  return worst;
}

bool ScaledGradients::may_step() {
  unscale();
  return !scaler_.overflowed(worst());
}

const std::shared_ptr<LateVerdict>& ScaledGradients::end_step() {
  unscale();
  if (!verdict_) verdict_ = std::make_shared<LateVerdict>(scaler_.device());
  scaler_.overflowed_later(worst(), *verdict_);
  return verdict_;
}

}  // namespace hortator::step
