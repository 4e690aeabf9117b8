#pragma once

#include "mpi/communicator.hpp"
#include "parallel/mesh/rank_group.hpp"
#include "parallel/pipeline/schedule.hpp"
#include "parallel/pipeline/stage_links.hpp"

namespace hortator::parallel {

/// The ranks that have the stages of a model.
struct StageRanks {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  PipelineShape shape;  ///< without micro-batches
  const RankGroup& ranks;
  mpi::Communicator with_same_layers;  ///< the ranks whose stages are these
  StageLinks links;
};

}  // namespace hortator::parallel
