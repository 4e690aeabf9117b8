#include "parallel/mesh/current_mesh.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/parallel/axis.hpp>
#include <hortator/parallel/split_between_processes.hpp>
#include <mutex>
#include <vector>

namespace hortator::parallel {
namespace {

std::mutex mutex;
std::vector<Mesh*> meshes;  // of the runs that exist, oldest first

}  // namespace

// Backward may run on a thread of the autograd engine.
Mesh& current_mesh() {
  const std::scoped_lock lock(mutex);
  if (!meshes.empty()) return *meshes.back();
  throw UsageError({.what = "A function of hortator::parallel was called without an Accelerator",
                    .why = "the Accelerator arranges the ranks along the axes of its mesh",
                    .hint = "construct the Accelerator first, and keep it until the last backward has ended"});
}

CurrentMesh::CurrentMesh(Mesh& mesh) : mesh_(&mesh) {
  const std::scoped_lock lock(mutex);
  meshes.push_back(mesh_);
}

CurrentMesh::~CurrentMesh() {
  const std::scoped_lock lock(mutex);
  std::erase(meshes, mesh_);
}

const Mesh* find_current_mesh() {
  const std::scoped_lock lock(mutex);
  return meshes.empty() ? nullptr : meshes.back();
}

int ranks_along(Axis axis) { return current_mesh().shape().size(axis); }

int index_along(Axis axis) {
  const auto& mesh = current_mesh();
  return mesh.shape().index(axis, mesh.all().index());
}

}  // namespace hortator::parallel

namespace hortator::detail {

SplitPosition split_position(int rank, int world) {
  const auto* mesh = parallel::find_current_mesh();
  if (mesh == nullptr || mesh->all().size() != world) return {.rank = rank, .world = world};
  return {.rank = mesh->shape().data_index(rank), .world = mesh->shape().data_size()};
}

}  // namespace hortator::detail
