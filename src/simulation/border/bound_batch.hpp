#pragma once

#include <c10/core/Stream.h>

#include <vector>

#include "simulation/calls/handles.hpp"
#include "simulation/samples/tensor_batch.hpp"

namespace hortator::simulation {

/// The arrays that a caller has bound.
class BoundBatch : public Handled<hortator_batch, BoundBatch> {
 public:
  explicit BoundBatch(c10::Device device) : device_(device) {}

  /// Throws UsageError for an unknown role and for an array that LibTorch cannot show.
  void add(hortator_role role, const hortator_array* array);
  const TensorBatch& tensors() const { return tensors_; }
  /// The streams of the arrays that are on the device.
  const std::vector<c10::Stream>& streams() const { return streams_; }
  c10::Device device() const { return device_; }

 private:
  void add(hortator_role role, const at::Tensor& tensor);

  c10::Device device_;
  TensorBatch tensors_ = {};
  std::vector<c10::Stream> streams_ = {};
};

}  // namespace hortator::simulation
