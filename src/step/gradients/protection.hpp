#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <hortator/training/protection.hpp>
#include <optional>
#include <set>
#include <vector>

#include "mpi/communicator.hpp"
#include "parallel/data_parallel/step_votes.hpp"
#include "step/gradients/loss_watch.hpp"

namespace hortator::step {

/// Throws UsageError for options that contradict each other.
void check(const ProtectionOptions& options);

/// A loss as the user gave it: a mean, or the sum of that many losses.
struct GivenLoss {
  at::Tensor loss = {};
  at::Tensor count = {};  ///< undefined for a mean
};

/// Whether some gradient of these tensors is not finite. Waits for the device.
bool has_nonfinite_gradient(const std::vector<at::Tensor>& holders);

/// The copy of a training's state in memory, to which OnNonfinite::rollback returns.
struct Rewinding {
  std::function<void()> remember = {};        ///< replaces the copy. @collective
  std::function<bool()> is_complete = {};     ///< whether there is a copy, of all that is prepared now
  std::function<void()> return_to_copy = {};  ///< @collective
  std::function<void()> forget = {};          ///< drops the copy
};

/// Decides, on all ranks alike, whether an update is left out or ends the run.
class Protection {
 public:
  /// What a rank knows of its gradients before a step.
  enum class GradientView {
    common,   ///< all ranks reach the same verdict on them, or have agreed on it
    separate  ///< they belong to this rank only
  };

  /// `votes` and `host` must outlive this. `gradients` says how gradients lie over the ranks of `host`.
  Protection(const ProtectionOptions& options, parallel::StepVotes& votes, const mpi::Communicator& host,
             GradientView gradients)
      : options_(options), votes_(votes), host_(host), gradients_(gradients), losses_(options.loss_spike_factor) {}

  /// What OnNonfinite::rollback needs.
  void rewind_by(Rewinding rewinding) { rewinding_ = std::move(rewinding); }
  /// Looks at the loss of a backward pass, whose verdict travels with its gradients. A sum of losses comes with their
  /// `count`.
  void note_loss(const GivenLoss& loss);
  /// Whether `optimizer` is the first to step since the last update: it judges the gradients of all optimizers.
  bool is_first(const void* optimizer) const { return judged_.empty() || judged_.contains(optimizer); }
  /// Whether `optimizer` must leave out this update, as all that step in it must. `nonfinite`: what this rank knows of
  /// the gradients. Throws on all ranks if the run must stop. @collective unless gradients were reduced since the last
  /// update
  bool forbids_step(const void* optimizer, bool nonfinite);
  /// Call it after forbids_step() has returned true, when the optimizer has left its step: returns to an earlier update
  /// if that is asked for. @collective
  void after_skip();
  /// fp16's scaler has skipped the update.
  void note_overflow(const void* optimizer);
  /// All gradients were cleared. Unless an optimizer has stepped since, those of a bad loss are among them.
  void forget_losses() {
    if (judged_.empty()) begin_update();
  }
  /// Forgets the losses, the copy and the present update: what is trained now is another model, or has other weights.
  /// Call it on all ranks.
  void forget();

  LossWatch& losses() { return losses_; }
  std::int64_t skipped() const { return skipped_; }
  std::int64_t rollbacks() const { return rollbacks_; }

 private:
  void begin_update();
  bool agree(bool nonfinite);
  void note_good_update();
  void note_skip();
  void plan_return();

  ProtectionOptions options_;
  parallel::StepVotes& votes_;
  const mpi::Communicator& host_;
  GradientView gradients_;
  LossWatch losses_;
  std::set<const void*> judged_ = {};  ///< optimizers that have asked about this update
  std::optional<bool> bad_loss_ = {};  ///< what all ranks say of this update's losses
  bool bad_gradient_ = false;          ///< of an optimizer that has stepped in this update
  std::int64_t updates_ = 0;
  std::int64_t skipped_ = 0;
  std::int64_t skipped_in_a_row_ = 0;
  Rewinding rewinding_ = {};
  std::optional<std::int64_t> copied_at_ = {};  ///< the update before which the state was copied
  bool must_return_ = false;                    ///< to the copy, after this update's first step was left out
  std::int64_t rollbacks_ = 0;
  std::int64_t rollbacks_in_a_row_ = 0;
};

}  // namespace hortator::step
