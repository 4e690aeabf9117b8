#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "paging/page.hpp"
#include "paging/paged_storages.hpp"

namespace hortator::parallel {

struct ArraySpec {
  std::string name = {};  ///< for those who look for its pointer while it is absent
  std::int64_t elements = 0;
  at::ScalarType type = at::kFloat;
};

/// Arrays of one dimension that have their sizes, and no memory yet: a pager gives it to them in turn.
std::vector<paging::NamedTensor> absent_arrays(const std::vector<ArraySpec>& specs, c10::Device device = at::kCPU);

/// Each as a page of its own, by its number among them.
std::vector<paging::Page> one_page_each(const std::vector<paging::NamedTensor>& arrays);

/// Elements of `memory` from `begin` on, as a tensor that is no view (LibTorch refuses to detach those in place); paged
/// if `memory` is.
at::Tensor stretch_of(const at::Tensor& memory, std::int64_t begin, at::IntArrayRef sizes);

/// The memory of an array that is held, for those who take its pointer.
at::Tensor held_memory(const at::Tensor& array);

}  // namespace hortator::parallel
