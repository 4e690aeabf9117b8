#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accelerator/state/divided_state.hpp"
#include "step/moments/optimizer_state.hpp"

/// Checkpoints of models whose layers are on several ranks along the axis pipeline. What a stage has is stored as on
/// one rank, so that any mesh can read it: the ranks of a stage write it, and the others know that they do.
namespace hortator::accelerator {

class Training;

/// Whether the entry of a checkpoint ("models/0/weight", "optimizers/0/state/0/weight/exp_avg") belongs to a parameter
/// that only ranks with other stages have.
bool is_of_other_stage(const Training& training, const std::string& entry);

/// Gives all ranks the buffers of each stage. @collective over the pipeline
void share_buffers_of_stages(const Training& training);

/// Adds to the snapshot what ranks with other stages have in theirs: their tensors without elements here, and their
/// numbers. Call it when parts were joined. @collective over the pipeline
void add_other_stages(SnapshotDraft& draft, const Training& training);

/// What optimizers remember of parameters of all stages. Without a pipeline it does nothing.
class MomentsOfStages {
 public:
  /// Finds the optimizers that remember something, while they are prepared. @collective over the pipeline
  explicit MomentsOfStages(const Training& training);
  /// Collects it on each rank. Call it when optimizers have whole parameters again. @collective over the pipeline
  void collect(const Training& training);
  /// Gives them to the optimizers. Call it when the module has its parameters again. Local.
  void give_back() const;

 private:
  struct Remembered {
    torch::optim::Optimizer* optimizer;
    StateDict state = {};
  };
  step::ParameterNames names_;
  std::vector<Remembered> all_;
};

/// The elements that each rank of a run writes of a parameter that this rank's stage is the first to have.
std::vector<core::Range> written_by_stage(const Training& training, std::int64_t elements);

}  // namespace hortator::accelerator
