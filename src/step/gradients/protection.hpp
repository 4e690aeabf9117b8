#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
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

/// Whether some gradient of these tensors is not finite. Waits for the device.
bool has_nonfinite_gradient(const std::vector<at::Tensor>& holders);

/// Decides, on all ranks alike, whether an update is left out or ends the run.
class Protection {
 public:
  /// What a rank knows of its gradients before a step.
  enum class GradientView {
    common,   ///< all ranks come to the same verdict on them, or have agreed on it
    separate  ///< they belong to this rank only
  };

  /// `votes` and `host` must outlive this. `gradients` says how gradients lie over the ranks of `host`.
  Protection(const ProtectionOptions& options, parallel::StepVotes& votes, const mpi::Communicator& host,
             GradientView gradients)
      : options_(options), votes_(votes), host_(host), gradients_(gradients), losses_(options.loss_spike_factor) {}

  /// Looks at the loss of a backward pass, whose verdict travels with its gradients.
  void note_loss(const at::Tensor& loss);
  /// Whether `optimizer` must leave out this update. `nonfinite`: what this rank knows of its gradients. Throws on all
  /// ranks if the run must stop. @collective unless gradients were reduced since the last update
  bool forbids_step(const void* optimizer, bool nonfinite);
  /// fp16's scaler has skipped the update.
  void note_overflow(const void* optimizer);

  LossWatch& losses() { return losses_; }
  std::int64_t skipped() const { return skipped_; }

 private:
  void begin_update();
  bool agree(bool nonfinite);

  ProtectionOptions options_;
  parallel::StepVotes& votes_;
  const mpi::Communicator& host_;
  GradientView gradients_;
  LossWatch losses_;
  std::set<const void*> judged_ = {};  ///< optimizers that have asked about this update
  std::optional<bool> bad_loss_ = {};  ///< what all ranks say of this update's losses
  std::int64_t updates_ = 0;
  std::int64_t skipped_ = 0;
};

}  // namespace hortator::step
