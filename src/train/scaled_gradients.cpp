#include "train/scaled_gradients.hpp"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "train/gradient_groups.hpp"

namespace hortator::train {
namespace {

at::Tensor one_number(double value, c10::Device device) {
  return at::full({1}, value, at::TensorOptions(device).dtype(at::kFloat));
}

// In double, as torch: the inverse is rounded once.
double inverse(float factor) { return 1.0 / static_cast<double>(factor); }

void refuse_fp16(const GradientGroup& group) {
  if (group.type != at::kHalf) return;
  throw UsageError({.what = "an optimizer's gradients are fp16 under mixed_precision fp16",
                    .why = "they were rounded to fp16 before they could be unscaled, and steps in fp16 lose small ones",
                    .hint = "keep the parameters in fp32: the model computes in fp16 all the same"});
}

}  // namespace

bool ScaledGradients::hold_any_of(const TensorSet& wanted) const {
  const auto mine = holders_();
  return std::any_of(mine.begin(), mine.end(),
                     [&](const at::Tensor& one) { return wanted.contains(one.unsafeGetTensorImpl()); });
}

void ScaledGradients::expect_scaled() {
  const float scale = scaler_.now().scale;
  if (factor_ != scale) multiply(static_cast<float>(scale * inverse(factor_)));
  factor_ = scale;
  checked_ = false;
}

void ScaledGradients::multiply(float by) {
  const at::NoGradGuard no_grad;
  for (const auto& group : gradient_groups(holders_())) at::_foreach_mul_(group.gradients, by);
}

void ScaledGradients::unscale() {
  if (checked_) return;
  const at::NoGradGuard no_grad;
  for (const auto& group : gradient_groups(holders_())) {
    refuse_fp16(group);
    at::_amp_foreach_non_finite_check_and_unscale_(group.gradients, not_finite_on(group.device),
                                                   one_number(inverse(factor_), group.device));
  }
  factor_ = 1;
  checked_ = true;
}

at::Tensor& ScaledGradients::not_finite_on(c10::Device device) {
  const auto found = std::find_if(not_finite_.begin(), not_finite_.end(),
                                  [&](const at::Tensor& number) { return number.device() == device; });
  return found != not_finite_.end() ? *found : not_finite_.emplace_back(one_number(0, device));
}

// Also a rank without gradients has a say, so that none waits.
bool ScaledGradients::may_step() {
  unscale();
  auto worst = not_finite_.empty() ? one_number(0, at::kCPU) : not_finite_.front();
  for (std::size_t i = 1; i < not_finite_.size(); ++i) {
    worst = at::maximum(worst, not_finite_[i].to(worst.device()));
  }
  not_finite_.clear();
  checked_ = false;
  return !scaler_.overflowed(worst);
}

}  // namespace hortator::train
