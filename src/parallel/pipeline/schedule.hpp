#pragma once

#include <cstdint>
#include <hortator/parallel/pipeline.hpp>
#include <string_view>
#include <vector>

/// The order of work in a pipeline. Pure.
namespace hortator::parallel {

/// What a rank does with one micro-batch in one stage.
struct StageAction {
  enum class Kind {
    forward,
    backward,  ///< gradients of inputs and weights
    inputs,    ///< the first half of backward: gradients of inputs
    weights,   ///< the second half: gradients of weights
  };
  Kind kind = Kind::forward;
  int stage = 0;  ///< of all stages
  int micro_batch = 0;

  friend bool operator==(const StageAction&, const StageAction&) = default;
};

/// Numbers of a pipeline. Stage s is on rank s % ranks.
struct PipelineShape {
  int ranks = 1;
  int stages_per_rank = 1;
  int micro_batches = 1;

  int stages() const { return ranks * stages_per_rank; }
  int rank_of(int stage) const { return stage % ranks; }
};

/// "gpipe", "1f1b", "interleaved" or "zb-h1".
std::string_view name_of(PipelineSchedule schedule);

/// Whether the schedule has an order for this number of micro-batches.
bool can_order(PipelineSchedule schedule, const PipelineShape& shape);

/// What `rank` does, in order. Throws UsageError for numbers that do not fit the schedule: stages_per_rank is 1 but for
/// `interleaved`, whose micro-batches come in equal rounds of at least `ranks`.
std::vector<StageAction> plan_rank(PipelineSchedule schedule, const PipelineShape& shape, int rank);

/// plan_rank() of each rank.
std::vector<std::vector<StageAction>> plan_ranks(PipelineSchedule schedule, const PipelineShape& shape);

}  // namespace hortator::parallel
