#pragma once

#include "parallel/mesh/rank_group.hpp"
#include "parallel/pipeline/schedule.hpp"
#include "parallel/pipeline/stage_links.hpp"

namespace hortator::parallel {

/// The ranks that have the stages of a model.
struct StageRanks {
  PlannedSchedule schedule = PlannedSchedule::one_f_one_b;
  PipelineShape shape;  ///< without micro-batches
  const RankGroup& ranks;
  StageLinks links;
};

}  // namespace hortator::parallel
