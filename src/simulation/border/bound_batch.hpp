#pragma once

#include "simulation/handles.hpp"
#include "simulation/samples/tensor_batch.hpp"

namespace hortator::simulation {

/// The arrays that a caller has bound.
class BoundBatch : public hortator_batch {
 public:
  /// Throws UsageError for an unknown role.
  void add(hortator_role role, const at::Tensor& tensor);
  const TensorBatch& tensors() const { return tensors_; }

 private:
  TensorBatch tensors_ = {};
};

}  // namespace hortator::simulation
