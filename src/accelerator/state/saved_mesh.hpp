#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "parallel/mesh/mesh_plan.hpp"

namespace hortator::accelerator {

/// The mesh for the manifest: its axes of more than one rank. Replicas or shards alone are called data.
std::map<std::string, std::int64_t> mesh_of(const parallel::MeshShape& shape);

}  // namespace hortator::accelerator
