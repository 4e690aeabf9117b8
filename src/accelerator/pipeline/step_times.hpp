#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"
#include "parallel/mesh/rank_group.hpp"
#include "parallel/pipeline/schedule.hpp"
#include "parallel/pipeline/timeline.hpp"

namespace hortator::accelerator {

/// The rows of a file of pipeline times, for `hortator plot`: what was planned, with the measured mean costs, and what
/// was measured. `measured` has the entries of each rank along the pipeline. Pure.
std::string rows_of_times(PipelineSchedule schedule, const parallel::PipelineShape& shape,
                          const std::vector<std::vector<parallel::Timeline::Entry>>& measured);

/// Writes such a file with what the ranks of the first pipeline have measured. If that fails, all throw.
/// @collective over `all`
void write_times(const std::filesystem::path& file, PipelineSchedule schedule, const parallel::PipelineShape& shape,
                 const std::vector<parallel::Timeline::Entry>& mine, const parallel::RankGroup* stages,
                 const mpi::Communicator& all);

}  // namespace hortator::accelerator
