#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.hpp"
#include "parallel/zero/gradient_array.hpp"

namespace hortator::parallel {

/// Memory of the communicators in which gradients travel: several buffers for each type and group of ranks, used in
/// turn.
class TravelBuffers {
 public:
  struct Buffer {
    at::Tensor memory = {};
    const comm::Communicator* group = nullptr;  ///< whose memory it is
    GradientArray* taken_by = nullptr;          ///< the array that travels in it, or null
  };

  /// Each buffer is as long as the longest array that travels in its type among its ranks. The arrays are in the same
  /// order on all ranks. @collective
  explicit TravelBuffers(const std::vector<GradientArray>& arrays);

  /// Whether no array travels in the buffer that next() would return.
  bool is_next_free(const GradientArray& array) const;
  /// The buffer for an array that is to travel.
  Buffer& next(const GradientArray& array);
  /// Must be called when the array has arrived.
  void free(const GradientArray& array);

 private:
  /// The number of turns up to the next buffer for the array.
  std::size_t next_turn(const GradientArray& array) const;

  std::vector<Buffer> buffers_;
  std::size_t turn_ = 0;
};

}  // namespace hortator::parallel
