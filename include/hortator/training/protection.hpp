#pragma once

namespace hortator {

/// What to do when a loss or a gradient of an update is not a finite number, or a loss is a spike.
enum class OnNonfinite {
  proceed,  ///< step; a warning names the first such loss
  skip,     ///< leave the update out on all ranks; optimizer.step_was_skipped() is true, and schedules wait
  stop      ///< throw the same Error on all ranks in optimizer.step(), with parameters as after the last good update
};

/// Protects a training from single bad batches, in every precision and at every ZeRO stage. All ranks decide alike, at
/// no extra message: what a rank saw of its losses travels with the gradients, and sharded gradients are judged where
/// ranks meet before a step. Each loss given to accelerator.backward() is read, which waits for a device. With fp16's
/// scaler, which has its own skips, an overflow of the scaled gradients is skipped, never a reason to stop.
struct ProtectionOptions {
  OnNonfinite on_nonfinite = OnNonfinite::proceed;
  /// A loss is a spike if it is more than this factor above the running mean of this rank's losses; 0: none is. From
  /// the 21st loss on. The mean follows a lasting rise of the loss: only its first losses are spikes.
  double loss_spike_factor = 0;
};

}  // namespace hortator
