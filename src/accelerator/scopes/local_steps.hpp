#pragma once

#include <hortator/parallel/gradient_scopes.hpp>
#include <hortator/parallel/local_sgd.hpp>
#include <hortator/training/state_dict.hpp>
#include <optional>

#include "accelerator/scopes/group_training.hpp"
#include "parallel/local_sgd/parameter_average.hpp"
#include "parallel/mesh/rank_group.hpp"

namespace hortator::accelerator {

class Training;

class OuterStep;

/// Implements LocalSGD on several ranks. With ZeRO a group of ranks along shard takes steps in the place of a rank, and
/// each rank averages its slices with those that have the same.
class LocalSteps {
 public:
  /// @collective
  LocalSteps(Training& training, ModelBase model, std::int64_t steps, OuterStep* outer = nullptr);
  ~LocalSteps();
  LocalSteps(const LocalSteps&) = delete;
  LocalSteps& operator=(const LocalSteps&) = delete;

  /// Counts a step, and averages the parameters after every `steps` of them. @collective
  void step();
  /// Takes part in averages until all ranks have left, then takes over the optimizers and the rest from the rank with
  /// the most steps. @collective
  void leave();
  int exceptions_at_begin() const { return exceptions_; }

 private:
  /// Averages and returns whether all ranks are done. @collective
  bool average(bool done);
  void end_steps();  ///< local

  Training& training_;
  ModelBase model_;
  const parallel::RankGroup& others_;  ///< the ranks that have the same slices, or the same weights
  std::int64_t every_;
  std::int64_t taken_ = 0;
  std::optional<parallel::ParameterAverage> parameters_;  ///< nothing with an OuterStep
  std::optional<NoSync> local_;                           ///< nothing with ZeRO
  std::optional<GroupTraining> group_;                    ///< nothing without
  OuterStep* outer_;                                      ///< null: the mean of the weights is what ranks continue with
  std::optional<StateDict> scale_;  ///< of the loss when the scope began; nothing without a scaler, and after leave()
  int exceptions_;
};

}  // namespace hortator::accelerator
