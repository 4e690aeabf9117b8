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

/// As long as it lives, backward leaves these models' gradients on their rank, where they add up. The first backward
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

/// As long as it lives, backward averages these models' gradients, also under no_sync or within a micro-step that would
/// leave them on their rank.
class HORTATOR_API SyncInBackward {
 public:
  [[nodiscard]] explicit SyncInBackward(std::vector<ModelBase> models);
  ~SyncInBackward();
  SyncInBackward(SyncInBackward&& other) noexcept = default;
  SyncInBackward& operator=(SyncInBackward&&) = delete;

 private:
  std::vector<ModelBase> models_;
};

/// One micro-step of gradient accumulation. What it decided (Accelerator::sync_gradients) stays after it has gone.
class HORTATOR_API MicroStep {
 public:
  explicit MicroStep(std::optional<NoSync> no_sync) : no_sync_(std::move(no_sync)) {}

 private:
  std::optional<NoSync> no_sync_;
};

/// Of Accelerator::join_uneven_inputs.
struct JoinOptions {
  /// In place of DataOptions::even_batches, for all prepared loaders, as long as the scope lives. Streams, and loaders
  /// with one reader a node, are even in any case.
  std::optional<bool> even_batches = {};
};

/// Ranks may have different numbers of batches as long as it lives. A rank that reaches its end takes part in the
/// others' reductions, with zeros, until all are there. Then models and optimizers become those of the last rank to
/// arrive. What is not a prepared model's forward or backward (gather, reduce, save_state) is not covered.
class HORTATOR_API JoinUnevenInputs {
 public:
  [[nodiscard]] JoinUnevenInputs(accelerator::Training& training, std::vector<ModelBase> models,
                                 const JoinOptions& options);
  /// Waits for the others, unless an exception is on its way out. Throws what goes wrong. @collective
  ~JoinUnevenInputs() noexcept(false);
  JoinUnevenInputs(const JoinUnevenInputs&) = delete;
  JoinUnevenInputs& operator=(const JoinUnevenInputs&) = delete;

 private:
  std::unique_ptr<accelerator::Joining> joining_;
};

}  // namespace hortator
