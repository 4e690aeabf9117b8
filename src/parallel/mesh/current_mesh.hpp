#pragma once

#include "parallel/mesh/mesh.hpp"

namespace hortator::parallel {

/// The mesh of the newest run of this process. Throws UsageError where there is none.
Mesh& current_mesh();
/// The same; null where there is none.
const Mesh* find_current_mesh();

/// Makes a mesh current while it exists. The one before is current again afterwards, if it still exists.
class CurrentMesh {
 public:
  explicit CurrentMesh(Mesh& mesh);
  ~CurrentMesh();
  CurrentMesh(const CurrentMesh&) = delete;
  CurrentMesh& operator=(const CurrentMesh&) = delete;

 private:
  Mesh* mesh_;
};

}  // namespace hortator::parallel
