#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "comm/communicator.hpp"
#include "parallel/zero/gradient_array.hpp"

namespace hortator::parallel {

/// Memory of the communicators in which gradients travel: two buffers for each type and group of ranks, used in turn.
class TravelBuffers {
 public:
  struct Buffer {
    at::Tensor memory = {};
    GradientArray* taken_by = nullptr;  ///< the array that travels in it, or null
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
  /// One is filled while the other travels.
  struct Pair {
    const comm::Communicator* group = nullptr;  ///< whose memory they are
    at::ScalarType type = at::kFloat;
    std::array<Buffer, 2> buffers = {};
    std::size_t turn = 0;

    std::size_t next() const { return turn % buffers.size(); }
  };
  std::size_t pair_of(const GradientArray& array) const;

  std::vector<Pair> pairs_;
};

}  // namespace hortator::parallel
