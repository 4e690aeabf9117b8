#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.hpp"
#include "parallel/zero/gradient_array.hpp"

namespace hortator::parallel {

/// The communicator's memory in which gradients travel: several buffers for each type, used in turn.
class TravelBuffers {
 public:
  struct Buffer {
    at::Tensor memory = {};
    GradientArray* taken_by = nullptr;  ///< the array that travels in it, or null
  };

  /// Each buffer is as long as the longest array that travels in its type. @collective
  TravelBuffers(comm::Communicator& communicator, const std::vector<GradientArray>& arrays);

  Buffer& next(at::ScalarType type);
  /// Must be called when the array has arrived.
  void free(const GradientArray& array);

 private:
  std::vector<Buffer> buffers_;
  std::size_t turn_ = 0;
};

}  // namespace hortator::parallel
