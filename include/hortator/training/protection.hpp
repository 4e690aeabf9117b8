#pragma once

#include <cstdint>

namespace hortator {

/// What to do when a loss or a gradient of an update is not a finite number, or a loss is a spike.
enum class OnNonfinite {
  proceed,   ///< step; a warning names the first such loss
  skip,      ///< leave the update out on all ranks; optimizer.step_was_skipped() is true, and schedules wait
  rollback,  ///< leave it out, and return models, optimizers and schedules to an earlier update on all ranks
  stop       ///< throw the same Error on all ranks in optimizer.step(), with parameters as after the last good update
};

/// Protects a training from single bad batches, in every precision and at every ZeRO stage. All ranks decide alike, at
/// no extra message: what a rank saw of its losses travels with the gradients, and sharded gradients are judged where
/// ranks meet before a step. Each loss given to accelerator.backward() is read, which waits for a device. Optimizers
/// that step after one backward pass leave the update out together: the first one to step judges the gradients of all.
/// With fp16's scaler, which has its own skips, an overflow of the scaled gradients is skipped, never a reason to stop,
/// and each optimizer's overflow is its own.
struct ProtectionOptions {
  OnNonfinite on_nonfinite = OnNonfinite::proceed;
  /// A loss is a spike if it is more than this factor above the running mean of this rank's losses; 0: none is. From
  /// the 20th loss on. Losses given as a sum and a count are compared as means. The mean follows a lasting rise of the
  /// loss: only its first losses are spikes.
  double loss_spike_factor = 0;
  /// With skip: all ranks throw when that many updates in a row are left out; 0: never.
  std::int64_t max_skips_in_a_row = 100;
  /// With rollback: the number of good updates after which each rank copies what it has of models, optimizers,
  /// schedules, averages and registered objects to the host's memory. A bad update returns all ranks to the last copy;
  /// loaders continue with their next batches. Steps after the last copy are lost, and their learning rates come again.
  std::int64_t snapshot_every = 50;
  /// With rollback: all ranks throw when they would return to one copy more often than this.
  std::int64_t max_rollbacks_in_a_row = 3;
};

}  // namespace hortator
