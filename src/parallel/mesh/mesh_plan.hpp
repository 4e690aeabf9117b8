#pragma once

#include <hortator/parallel/mesh.hpp>
#include <hortator/parallel/zero.hpp>
#include <string>

#include "parallel/mesh/mesh_shape.hpp"

/// From a run's options to its mesh. Pure.
namespace hortator::parallel {

/// Throws UsageError for options that no number of ranks fits.
void check(const ParallelConfig& config, const ZeroConfig& zero);

/// The mesh of `ranks` ranks. Each node has `ranks_of_a_node`, 0 where they differ, which matters if zero.shard_group
/// is ZeroConfig::node. Throws UsageError,
/// which names the axes, where they do not fit.
MeshShape plan_mesh(const ParallelConfig& config, const ZeroConfig& zero, int ranks, int ranks_of_a_node);

/// What to warn of where ranks along tensor or context are on several nodes, each of `ranks_of_a_node` ranks: "". Nodes
/// of different sizes are 0.
std::string warning_of_nodes(const MeshShape& shape, int ranks_of_a_node);

}  // namespace hortator::parallel
