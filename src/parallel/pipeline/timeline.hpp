#pragma once

#include <string>
#include <vector>

#include "parallel/pipeline/schedule.hpp"

/// What a schedule costs. Pure.
namespace hortator::parallel {

/// Times of one micro-batch in one stage.
struct StageCosts {
  double forward = 1, inputs = 1, weights = 1;

  double of(StageAction::Kind kind) const;
};

/// When each action of each rank runs, if messages take no time.
struct Timeline {
  struct Entry {
    StageAction action;
    double begin = 0, end = 0;
  };
  std::vector<std::vector<Entry>> ranks = {};
  std::vector<int> peaks = {};  ///< of each rank: the most micro-batches whose activations it holds at once

  double length() const;
  /// The share of all ranks' time in which they wait.
  double idle_share() const;
};

/// Runs the plans of all ranks. Throws Error if they cannot run: an action comes twice or is missing, or ranks wait for
/// each other.
Timeline run_plans(const std::vector<std::vector<StageAction>>& plans, const PipelineShape& shape,
                   const StageCosts& costs = {});

/// A line for each rank, a column for each unit of time: "0 1 2 . 0 3", with backward passes in brackets.
std::string chart(const Timeline& timeline);

}  // namespace hortator::parallel
