#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/kernels/reduce_kernels.hpp"

/// A reduction in two levels: within each node, then over the nodes.
namespace hortator::comm {

inline std::size_t bytes_of(std::int64_t elements, const kernels::Reduction& what) {
  return static_cast<std::size_t>(elements) * kernels::size_of(what.element);
}

/// Whether the division of a mean comes before the second level. This holds for 16-bit floats: the nodes' sums are
/// rounded to 16 bits before they travel, and must not overflow.
inline bool divides_first(const kernels::Reduction& what) { return kernels::size_of(what.element) == 2; }

/// The first level.
inline kernels::Reduction in_one_node(kernels::Reduction what) {
  if (!divides_first(what)) what.divisor = 1;
  return what;
}

/// The second level.
inline kernels::Reduction over_nodes(kernels::Reduction what) {
  if (divides_first(what)) what.divisor = 1;
  return what;
}

}  // namespace hortator::comm
