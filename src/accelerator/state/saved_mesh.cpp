#include "accelerator/state/saved_mesh.hpp"

namespace hortator::accelerator {

std::map<std::string, std::int64_t> mesh_of(const parallel::MeshShape& shape) {
  std::map<std::string, std::int64_t> mesh;
  for (const auto axis : parallel::all_axes) {
    if (shape.size(axis) > 1) mesh.emplace(name_of(axis), shape.size(axis));
  }
  if (mesh.contains("replicate") && mesh.contains("shard")) return mesh;
  mesh.erase("replicate");
  mesh.erase("shard");
  mesh.emplace("data", shape.data_size());
  return mesh;
}

}  // namespace hortator::accelerator
