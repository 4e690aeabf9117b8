#pragma once

#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace hortator {

namespace accelerator {
class Joining;
class Training;
}  // namespace accelerator

/// While it lives, backward does not average these models' gradients: they add up on their rank. The first backward
/// after it averages the sum.
class HORTATOR_API NoSync {
 public:
  [[nodiscard]] explicit NoSync(std::vector<ModelBase> models);
  ~NoSync();
  NoSync(NoSync&& other) noexcept = default;
  NoSync& operator=(NoSync&&) = delete;

 private:
  std::vector<ModelBase> models_;
};

/// While it lives, backward averages these models' gradients, even under no_sync or within a micro-step that would not.
class HORTATOR_API SyncInBackward {
 public:
  [[nodiscard]] explicit SyncInBackward(std::vector<ModelBase> models);
  ~SyncInBackward();
  SyncInBackward(SyncInBackward&& other) noexcept = default;
  SyncInBackward& operator=(SyncInBackward&&) = delete;

 private:
  std::vector<ModelBase> models_;
};

/// One micro-step of gradient accumulation. What it decides (Accelerator::sync_gradients) holds after its destruction.
class HORTATOR_API MicroStep {
 public:
  explicit MicroStep(std::optional<NoSync> no_sync) : no_sync_(std::move(no_sync)) {}

 private:
  std::optional<NoSync> no_sync_;
};

/// Options of Accelerator::join_uneven_inputs.
struct JoinOptions {
  /// Replaces DataOptions::even_batches, for all prepared loaders, while the scope lives. Streams, and loaders with one
  /// reader a node, are always even.
  std::optional<bool> even_batches = {};
};

/// While it lives, ranks may have different numbers of batches. A rank that reaches its end takes part in the others'
/// reductions, with zeros, until all ranks have reached it. Then all ranks get what the last one to arrive has: models,
/// optimizers, schedules, the count of micro-steps, the epoch of loaders, and registered objects that hold tensors
/// (with all their values; other registered objects, and random numbers, stay each rank's own). Only prepared models'
/// forward and backward are covered, not gather, reduce or save_state.
class HORTATOR_API JoinUnevenInputs {
 public:
  [[nodiscard]] JoinUnevenInputs(accelerator::Training& training, std::vector<ModelBase> models,
                                 const JoinOptions& options);
  /// Waits for the other ranks, unless an exception ends the scope. May throw. @collective
  ~JoinUnevenInputs() noexcept(false);
  JoinUnevenInputs(const JoinUnevenInputs&) = delete;
  JoinUnevenInputs& operator=(const JoinUnevenInputs&) = delete;

 private:
  std::unique_ptr<accelerator::Joining> joining_;
};

}  // namespace hortator
