#pragma once

#include <hortator/export.hpp>

namespace hortator::parallel {

/// The dimensions of parallelism, outermost first: the axes of the mesh in which the ranks of a run are arranged. Ranks
/// that differ only along an inner axis are neighbours, so that they share a node: tensor parallelism communicates
/// most, pipelines least.
enum class Axis { pipeline, replicate, shard, context, tensor };

/// The number of ranks along `axis` in the mesh of the newest Accelerator. Throws where none lives.
HORTATOR_API int ranks_along(Axis axis);
/// This rank's position along it, from 0.
HORTATOR_API int index_along(Axis axis);

}  // namespace hortator::parallel
