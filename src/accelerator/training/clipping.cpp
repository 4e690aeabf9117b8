#include "accelerator/training/clipping.hpp"

#include <c10/core/GradMode.h>

#include <cmath>
#include <hortator/error.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/reproducing.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "step/gradients/clip.hpp"
#include "step/gradients/protection.hpp"
#include "step/gradients/stage_norm.hpp"

namespace hortator::accelerator {
namespace {

// Agrees, since gradients may differ between ranks if the program has changed them. @collective
void require_finite(const at::Tensor& norm, double norm_type, const mpi::Communicator& host) {
  mpi::all_or_none(host, [&] {
    const auto value = norm.item<double>();
    if (std::isfinite(value)) return;
    throw Error({.what = text::concat("The gradients' norm of type ", norm_type, " is ", value),
                 .why = "ClipOptions::error_if_nonfinite is set",
                 .hint = "look for a loss that is not finite, or unset error_if_nonfinite"});
  });
}

// @collective unless this rank has all gradients
at::Tensor norm_of(Training& training, const std::vector<at::Tensor>& parameters, double norm_type) {
  const auto* const stages = training.channels.stages();
  if (stages != nullptr && training.control.reproducing() != nullptr)
    return step::total_norm_in_order(parameters, training.prepared.counted(parameters), norm_type,
                                     stages->ranks.on_device);
  const auto holders = training.prepared.gradient_holders(parameters);
  if (stages == nullptr && holders.are_whole())
    return step::total_norm(step::gradient_groups(holders.all()), norm_type);
  return step::total_norm(training.prepared.gradient_holders(training.prepared.counted(parameters)), norm_type,
                          training.channels.ranks_of_norms());
}

}  // namespace

at::Tensor clip_norm(Training& training, const std::vector<at::Tensor>& parameters, double max_norm, double norm_type,
                     const ClipOptions& options) {
  step::check_limit(max_norm, "max_norm");
  if (options.error_if_nonfinite) training.prepared.require_together("clip_grad_norm_ with error_if_nonfinite");
  training.synchronise_gradients();
  if (!training.control.is_partial()) training.control.unscale_gradients_of(parameters);
  const at::NoGradGuard no_grad;
  const auto gradients = step::gradient_groups(training.prepared.gradient_holders(parameters).all());
  auto norm = norm_of(training, parameters, norm_type);
  if (training.control.is_partial()) return norm;
  if (options.error_if_nonfinite) require_finite(norm, norm_type, training.host());
  step::scale_to_norm(gradients, norm, max_norm);
  return norm;
}

void clip_value(Training& training, const std::vector<at::Tensor>& parameters, double limit) {
  step::check_limit(limit, "clip_value");
  if (training.control.is_partial()) return;
  training.synchronise_gradients();
  training.control.unscale_gradients_of(parameters);
  const at::NoGradGuard no_grad;
  const auto holders = training.prepared.gradient_holders(parameters).all();
  if (training.control.protection() != nullptr) {
    for (const auto& optimizer : training.prepared.optimizers()) optimizer->look_before_clamping(holders);
  }
  step::clamp(step::gradient_groups(holders), limit);
}

}  // namespace hortator::accelerator
