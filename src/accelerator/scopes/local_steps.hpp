#pragma once

#include <hortator/parallel/gradient_scopes.hpp>
#include <hortator/parallel/local_sgd.hpp>

#include "accelerator/training/training.hpp"
#include "parallel/local_sgd/parameter_average.hpp"

namespace hortator::accelerator {

/// Behind LocalSGD, where there are several ranks.
class LocalSteps {
 public:
  /// @collective
  LocalSteps(Training& training, const ModelBase& model, std::int64_t steps);

  /// @collective every so many calls
  void step();
  /// Takes part in averages until all ranks are done. @collective
  void leave();
  int exceptions_at_begin() const { return exceptions_; }

 private:
  /// Averages, and returns whether all ranks are done. @collective
  bool average(bool done);

  Training& training_;
  ModelBase model_;
  std::int64_t every_;
  std::int64_t taken_ = 0;
  parallel::ParameterAverage parameters_;
  NoSync local_;
  int exceptions_;
};

}  // namespace hortator::accelerator
