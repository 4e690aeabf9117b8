#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <hortator/training/state_dict.hpp>
#include <vector>

#include "checkpoint/write/layout.hpp"

namespace hortator::checkpoint {

/// Where the elements of a slice are in memory: in `tensor`, whose first element has the row-major index `first` in the
/// whole tensor.
struct TensorSource {
  at::Tensor tensor;
  std::int64_t first = 0;
  TensorSlice slice;
  bool is_part = false;                   ///< other ranks' bytes may be adjacent to it in the file
  std::function<at::Tensor()> read = {};  ///< gets the elements when they are written, where `tensor` has none

  /// The source with its elements in memory.
  TensorSource loaded() const {
    auto source = *this;
    if (read) source.tensor = read();
    return source;
  }
  core::Range in_tensor() const { return {slice.elements.begin - first, slice.elements.end - first}; }
};

/// Returns one source for each slice. Tensor i of the layout is `tensors[i]`.
std::vector<TensorSource> sources_of(const std::vector<TensorSlice>& work, const std::vector<at::Tensor>& tensors);

/// Memory that sources are copied to. It is kept from one save to the next, because allocating it takes longer than the
/// copy.
class StagingMemory {
 public:
  /// Copies the elements and returns sources that refer to the copies. Invalidates the sources of earlier calls.
  std::vector<TensorSource> copy(const std::vector<TensorSource>& sources);

 private:
  void make_room(const std::vector<TensorSource>& sources);

  at::Tensor memory_;
  bool is_page_locked_ = false;
};

}  // namespace hortator::checkpoint
