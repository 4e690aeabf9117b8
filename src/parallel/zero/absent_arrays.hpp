#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "paging/stores/paged_storages.hpp"

namespace hortator::parallel {

struct ArraySpec {
  std::string name = {};  ///< for the error when its pointer is taken while it is absent
  std::int64_t elements = 0;
  at::ScalarType type = at::kFloat;
  bool is_int8 = false;  ///< gathered in int8 blocks (int8_blocks.hpp): each rank's part consists of whole ones
};

/// Arrays of one dimension that have their sizes but no memory; a pager gives them memory when they are used.
std::vector<paging::NamedTensor> absent_arrays(const std::vector<ArraySpec>& specs, c10::Device device = at::kCPU);

/// One page for each array, with the array's number.
std::vector<paging::Page> one_page_each(const std::vector<paging::NamedTensor>& arrays);

/// Elements of `memory` from `begin` on, as a tensor that is not a view (LibTorch refuses to detach views in place).
/// Paged if `memory` is.
at::Tensor range_of(const at::Tensor& memory, std::int64_t begin, at::IntArrayRef sizes);

/// An array that is held, as a tensor whose pointer can be taken.
at::Tensor held_memory(const at::Tensor& array);

}  // namespace hortator::parallel
