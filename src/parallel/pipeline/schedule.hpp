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

/// The schedules that are planned: those of PipelineSchedule, and one whose backward passes are in halves.
enum class PlannedSchedule { gpipe, one_f_one_b, interleaved, zero_bubble };

PlannedSchedule planned(PipelineSchedule schedule);
/// "gpipe", "1f1b", "interleaved" or "zb-h1".
std::string_view name_of(PlannedSchedule schedule);

/// Whether the schedule has an order for this number of micro-batches.
bool can_order(PlannedSchedule schedule, const PipelineShape& shape);

/// What `rank` does, in order. Throws UsageError for numbers that do not fit the schedule: stages_per_rank is 1 but for
/// `interleaved`, whose micro-batches come in equal rounds of at least `ranks`.
std::vector<StageAction> plan_rank(PlannedSchedule schedule, const PipelineShape& shape, int rank);

/// plan_rank() of each rank.
std::vector<std::vector<StageAction>> plan_ranks(PlannedSchedule schedule, const PipelineShape& shape);

}  // namespace hortator::parallel
