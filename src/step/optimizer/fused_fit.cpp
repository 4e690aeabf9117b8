#include "step/optimizer/fused_fit.hpp"

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "interception/dispatch_keys.hpp"
#include "machine/device/device.hpp"
#include "step/step_ahead.hpp"

namespace hortator::step {

namespace {

bool have_same_strides(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  for (std::int64_t i = 0; i < a.dim(); ++i) {
    if (a.size(i) != 1 && a.stride(i) != b.stride(i)) return false;
  }
  return true;
}

bool has_kernels(c10::Device device) {
  const auto* const kind = machine::kind_of(device);
  return device.is_cpu() || (kind != nullptr && kind->has_fused_kernels);
}

bool parameter_fits(const at::Tensor& parameter) {
  const auto& gradient = parameter.grad();
  if (!gradient.defined()) return true;
  return has_kernels(parameter.device()) && gradient.device() == parameter.device() &&
         parameter.layout() == at::kStrided && gradient.layout() == at::kStrided &&
         at::isFloatingType(parameter.scalar_type()) && gradient.scalar_type() == parameter.scalar_type() &&
         parameter.is_non_overlapping_and_dense() && have_same_strides(parameter, gradient);
}

bool has_duplicates(const std::vector<at::Tensor>& parameters) {
  std::vector<const void*> sorted;
  for (const auto& parameter : parameters) sorted.push_back(parameter.unsafeGetTensorImpl());
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

}  // namespace

bool has_room_beside(std::size_t bytes, const at::Tensor& parameter, const at::Tensor& memory) {
  constexpr std::size_t max_bytes_per_call = std::size_t{4} << 20;
  const bool is_paged = interception::carries_key(parameter) || (memory.defined() && interception::carries_key(memory));
  return (!parameter.is_cpu() && !is_paged) || bytes < max_bytes_per_call;
}

bool fits_fused_kernel(const torch::optim::OptimizerParamGroup& group) {
  return std::all_of(group.params().begin(), group.params().end(), parameter_fits) && !has_duplicates(group.params());
}

at::Tensor gradient_of(const at::Tensor& parameter) {
  const auto& gradient = parameter.grad();
  if (gradient.strides() == parameter.strides()) return gradient;
  return gradient.as_strided(parameter.sizes(), parameter.strides());
}

void throw_first_gradient() {
  throw UsageError({.what = "A parameter gets its first gradient in a step that is recorded (accelerator.capture)",
                    .why = "each replay would reset the optimizer's state of it",
                    .hint = "use it in the warm-up steps too; CaptureOptions::warm_up is their number"});
}

std::optional<at::Tensor> not_finite_for(const StepMode& mode, c10::Device device) {
  if (mode.ahead == nullptr) return std::nullopt;
  return mode.ahead->not_finite_on(device);
}

void lay_out_as(at::Tensor& moment, const at::Tensor& parameter) {
  if (moment.strides() != parameter.strides()) moment = at::empty_like(parameter).copy_(moment);
}

}  // namespace hortator::step
