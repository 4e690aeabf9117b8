#pragma once

#include <hortator/parallel/gradient_scopes.hpp>
#include <hortator/parallel/local_sgd.hpp>
#include <hortator/training/state_dict.hpp>
#include <optional>

#include "parallel/local_sgd/parameter_average.hpp"

namespace hortator::accelerator {

class Training;

class OuterStep;

/// Implements LocalSGD on several ranks.
class LocalSteps {
 public:
  /// @collective
  LocalSteps(Training& training, const ModelBase& model, std::int64_t steps, OuterStep* outer = nullptr);
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

  Training& training_;
  ModelBase model_;
  std::int64_t every_;
  std::int64_t taken_ = 0;
  std::optional<parallel::ParameterAverage> parameters_;  ///< nothing with an OuterStep
  NoSync local_;
  OuterStep* outer_;                ///< null: the mean of the weights is what ranks continue with
  std::optional<StateDict> scale_;  ///< of the loss when the scope began; nothing without a scaler, and after leave()
  int exceptions_;
};

}  // namespace hortator::accelerator
