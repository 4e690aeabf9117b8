#pragma once

#include <memory>
#include <vector>

#include "parallel/data_parallel/gradient_marks.hpp"
#include "step/model/model_core.hpp"

namespace hortator::step {

/// Detects whether a backward pass has reached a model. Gradient slices exist even if this rank's pass did not reach
/// it.
class ReachMarks {
 public:
  explicit ReachMarks(const ModelCore& model)
      : model_(model), gradients_(model.module().parameters()), scatters_(model.scatters()) {}
  bool have_changed() const { return gradients_.have_changed() || model_.scatters() != scatters_; }

 private:
  const ModelCore& model_;
  parallel::GradientMarks gradients_;
  std::int64_t scatters_;
};

inline std::vector<ReachMarks> marks_of(const std::vector<std::shared_ptr<ModelCore>>& models) {
  std::vector<ReachMarks> marks;
  for (const auto& model : models) marks.emplace_back(*model);
  return marks;
}

}  // namespace hortator::step
