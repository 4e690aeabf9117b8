#include "step/gradients/protection.hpp"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "core/log.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "step/gradients/gradient_groups.hpp"

namespace hortator::step {

void check(const ProtectionOptions& options) {
  if (!(options.loss_spike_factor == 0 || options.loss_spike_factor > 1)) {
    throw UsageError({.what = text::concat("protection.loss_spike_factor is ", options.loss_spike_factor),
                      .why = "a loss is a spike if it is that many times the mean",
                      .hint = "use a number above 1, or 0 for no spikes"});
  }
  if (options.loss_spike_factor > 0 && options.on_nonfinite == OnNonfinite::proceed) {
    throw UsageError({.what = "protection.loss_spike_factor is set, and protection.on_nonfinite is proceed",
                      .why = "nothing would be done about a spike",
                      .hint = "set on_nonfinite to skip or stop"});
  }
}

bool has_nonfinite_gradient(const std::vector<at::Tensor>& holders) {
  const at::NoGradGuard no_grad;
  for (const auto& group : gradient_groups(holders)) {
    const auto options = at::TensorOptions(group.device).dtype(at::kFloat);
    auto found = at::zeros({1}, options);
    at::_amp_foreach_non_finite_check_and_unscale_(group.gradients, found, at::ones({1}, options));
    if (found.item<float>() != 0) return true;
  }
  return false;
}

void Protection::note_loss(const at::Tensor& loss) {
  if (!judged_.empty()) begin_update();
  if (!loss.defined() || loss.numel() != 1 || !at::isFloatingType(loss.scalar_type())) return;
  if (losses_.is_bad(loss.item<double>())) votes_.report_bad_loss(true);
}

void Protection::begin_update() {
  judged_.clear();
  bad_loss_.reset();
  votes_.forget_losses();
}

// Without note_loss() between two steps of one optimizer, its second step is another update (plain loss.backward()).
bool Protection::forbids_step(const void* optimizer, bool nonfinite) {
  if (judged_.contains(optimizer)) begin_update();
  if (judged_.empty()) ++updates_;
  judged_.insert(optimizer);
  if (!agree(nonfinite)) return false;
  if (options_.on_nonfinite == OnNonfinite::stop) {
    throw Error({.what = text::concat("Update ", updates_, " has a loss or gradient that is not finite, or a spike"),
                 .why = "protection.on_nonfinite is stop; parameters are those after the last good update",
                 .hint = "resume from the last checkpoint with a lower learning rate, clip gradients, or use skip"});
  }
  if (skipped_++ == 0 && host_.rank() == 0)
    log::warn("update ", updates_,
              " is skipped on all ranks: a loss or gradient is not finite, or a spike; later ones are counted only");
  return true;
}

bool Protection::agree(bool nonfinite) {
  if (!bad_loss_) bad_loss_ = votes_.count_bad_loss(host_);
  if (gradients_ == GradientView::separate) {
    const auto mine = static_cast<std::int64_t>(nonfinite);
    nonfinite = mpi::all_reduce(host_, mine, MPI_MAX) != 0;
  }
  return *bad_loss_ || nonfinite;
}

void Protection::note_overflow(const void* optimizer) {
  if (judged_.contains(optimizer)) begin_update();
  if (judged_.empty()) ++updates_;
  judged_.insert(optimizer);
}

}  // namespace hortator::step
