#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/training/state_dict.hpp>
#include <vector>

#include "checkpoint/write/plan.hpp"

namespace hortator::checkpoint {

/// Where the elements of one slab are in memory: in `tensor`, counted in row-major order from `first` on.
struct Source {
  at::Tensor tensor;
  std::int64_t first = 0;
  Slab slab;
  bool is_part = false;  ///< others' bytes may lie right before and after it in the file

  core::Range in_tensor() const { return {slab.elements.begin - first, slab.elements.end - first}; }
};

/// One for each slab of `work`, where tensor i of the layout is number i of `tensors`.
std::vector<Source> sources_of(const std::vector<Slab>& work, const std::vector<at::Tensor>& tensors);

/// Memory that sources are copied into. It is kept from one save to the next: fresh memory takes longer than the copy.
class Staging {
 public:
  /// The same elements, as they are now, in this memory. Sources made before are void.
  std::vector<Source> copy(const std::vector<Source>& sources);

 private:
  void make_room(const std::vector<Source>& sources);

  at::Tensor memory_;
  bool is_page_locked_ = false;
};

}  // namespace hortator::checkpoint
