#include "step/gradients/protection.hpp"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <hortator/error.hpp>
#include <utility>

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
  if (options.max_skips_in_a_row < 0) {
    throw UsageError({.what = text::concat("protection.max_skips_in_a_row is ", options.max_skips_in_a_row),
                      .why = "it is a number of updates",
                      .hint = "use a whole number from 1, or 0 for no limit"});
  }
  if (options.snapshot_every < 1 || options.max_rollbacks_in_a_row < 1) {
    throw UsageError({.what = text::concat("protection.snapshot_every is ", options.snapshot_every,
                                           " and max_rollbacks_in_a_row is ", options.max_rollbacks_in_a_row),
                      .why = "they count updates between copies, and returns to one copy",
                      .hint = "use 1 or more"});
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

// A sum of no losses says nothing about their mean.
void Protection::note_loss(const GivenLoss& given) {
  if (!judged_.empty()) begin_update();
  const auto& loss = given.loss;
  if (!loss.defined() || loss.numel() != 1 || !at::isFloatingType(loss.scalar_type())) return;
  const double number = loss.item<double>();
  const double count = given.count.defined() ? given.count.item<double>() : 1;
  const bool is_bad = count > 0 ? losses_.is_bad(number / count) : !std::isfinite(number);
  if (is_bad) votes_.report_bad_loss(true);
}

void Protection::begin_update() {
  judged_.clear();
  bad_loss_.reset();
  bad_gradient_ = false;
  votes_.forget_losses();
}

// Without note_loss() between two steps of one optimizer, its second step is another update (plain loss.backward()).
bool Protection::forbids_step(const void* optimizer, bool nonfinite) {
  if (judged_.contains(optimizer)) begin_update();
  const bool begins = judged_.empty();
  if (begins) ++updates_;
  judged_.insert(optimizer);
  if (!agree(nonfinite)) {
    if (begins) note_good_update();
    return false;
  }
  if (options_.on_nonfinite == OnNonfinite::stop) {
    throw Error({.what = text::concat("Update ", updates_, " has a loss or gradient that is not finite, or a spike"),
                 .why = "protection.on_nonfinite is stop; parameters are those after the last good update",
                 .hint = "resume from the last checkpoint with a lower learning rate, clip gradients, or use skip"});
  }
  if (begins) note_skip();
  return true;
}

// The gradients of the parameters as they are now are good, and no optimizer has stepped in this update yet. A copy
// without what was prepared since is replaced; until then all of that is as it was prepared.
void Protection::note_good_update() {
  skipped_in_a_row_ = 0;
  if (options_.on_nonfinite != OnNonfinite::rollback || !rewinding_.remember) return;
  if (copied_at_ && rewinding_.is_complete() && updates_ - *copied_at_ < options_.snapshot_every) return;
  copied_at_.reset();  // the old copy is gone, even if there is no memory for a new one
  rewinding_.remember();
  copied_at_ = updates_;
  rollbacks_in_a_row_ = 0;
}

void Protection::after_skip() {
  if (!std::exchange(must_return_, false)) return;
  rewinding_.return_to_copy();
  ++rollbacks_;
  if (host_.rank() == 0)
    log::warn("update ", updates_, " is bad: all ranks return to what they had before update ", *copied_at_);
  copied_at_ = updates_;  // the copy counts as new, so that the next one is made as many updates later
}

void Protection::note_skip() {
  ++skipped_;
  ++skipped_in_a_row_;
  constexpr std::int64_t warn_every = 50;
  if ((skipped_ == 1 || skipped_ % warn_every == 0) && host_.rank() == 0) {
    log::warn("update ", updates_,
              " is skipped on all ranks: a loss or gradient is not finite, or a spike (skipped so "
              "far: ",
              skipped_, ", of these in a row: ", skipped_in_a_row_, "; the next warning comes after ", warn_every, ")");
  }
  if (options_.on_nonfinite == OnNonfinite::rollback) return plan_return();
  if (options_.max_skips_in_a_row == 0 || skipped_in_a_row_ < options_.max_skips_in_a_row) return;
  throw Error({.what = text::concat(skipped_in_a_row_, " updates in a row were skipped"),
               .why = "each had a loss or gradient that is not finite, or a spike, so that nothing is learnt any more",
               .hint = "resume from an earlier checkpoint with a lower learning rate, or raise "
                       "protection.max_skips_in_a_row"});
}

void Protection::plan_return() {
  if (!copied_at_) {
    throw Error({.what = text::concat("Update ", updates_, " is bad, and there is no good one to return to"),
                 .why = "the first update already has a loss or gradient that is not finite",
                 .hint = "check the data and the initial weights, or load an earlier checkpoint"});
  }
  if (rollbacks_in_a_row_++ < options_.max_rollbacks_in_a_row) {
    must_return_ = true;
    return;
  }
  throw Error({.what = text::concat("All ranks have returned ", options_.max_rollbacks_in_a_row,
                                    " times to the same update, and update ", updates_, " is bad again"),
               .why = "a loss or gradient is not finite, or a spike, soon after each return",
               .hint = "resume from an earlier checkpoint with a lower learning rate, or clip gradients"});
}

bool Protection::agree(bool nonfinite) {
  if (!bad_loss_) bad_loss_ = votes_.count_bad_loss(host_);
  if (gradients_ == GradientView::separate) {
    const auto mine = static_cast<std::int64_t>(nonfinite);
    nonfinite = mpi::all_reduce(host_, mine, mpi::Op::max) != 0;
  }
  bad_gradient_ |= nonfinite;
  return *bad_loss_ || bad_gradient_;
}

void Protection::forget() {
  begin_update();
  losses_.forget();
  skipped_in_a_row_ = 0;
  copied_at_.reset();
  must_return_ = false;
  rollbacks_in_a_row_ = 0;
  if (rewinding_.forget) rewinding_.forget();
}

void Protection::note_overflow(const void* optimizer) {
  if (judged_.contains(optimizer)) begin_update();
  if (judged_.empty()) ++updates_;
  judged_.insert(optimizer);
}

}  // namespace hortator::step
