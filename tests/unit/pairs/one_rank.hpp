#pragma once

#include <hortator/hortator.hpp>
#include <vector>

#include "unit/accelerator/experts/experts_course.hpp"

/// The numbers of a training on a few ranks, and of one whose ranks divide the model or its sequences.
namespace hortator::test {

/// What `scenario(options)` returns on the first `ranks` ranks, given to all ranks. @collective
template <typename Scenario>
std::vector<double> on_first(int ranks, const Scenario& scenario, AcceleratorOptions options = {}) {
  std::vector<double> numbers;
  {
    const FirstRanks first(ranks);
    options.communicator = first.handle();
    if (first.is_in()) numbers = scenario(options);
  }
  return from_first(numbers);
}

/// Appends all parameters of a model, whole. @collective
template <typename Model>
void append_weights(std::vector<double>& to, const Accelerator& accelerator, const Model& model) {
  {
    const auto whole = accelerator.summon_full_parameters(model);
    for (const auto& parameter : model.parameters()) append(to, parameter);
  }
  accelerator.wait_for_everyone();
}

/// This rank's place among those with different batches.
inline const parallel::RankGroup& data_of(Accelerator& accelerator) {
  return accelerator::Training::of(accelerator).data();
}

}  // namespace hortator::test
