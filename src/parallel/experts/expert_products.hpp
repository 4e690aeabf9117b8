#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace hortator::parallel {

/// Experts that one rank has.
struct LocalExperts {
  at::Tensor gate_up_proj = {};  ///< [experts, 2 x inner, width]
  at::Tensor down_proj = {};     ///< [experts, width, inner]
  std::function<at::Tensor(const at::Tensor&)> activation = {};

  /// What the experts compute of `rows`: the first `counts[0]` are those of the first expert. An expert without rows
  /// gets zero gradients. Does not communicate.
  at::Tensor operator()(const at::Tensor& rows, const std::vector<std::int64_t>& counts) const;
};

}  // namespace hortator::parallel
