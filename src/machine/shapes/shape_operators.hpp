#pragma once

#include <set>
#include <string>

/// Operators that compute shapes only.
namespace hortator::machine {

/// From now on operators that this thread calls on CPU tensors make results of the right shapes, types and sizes, and
/// compute nothing; in its backward passes too. Those on small tensors are computed, and so are those whose results
/// have a shape that depends on values. Call count_memory(CountedMemory::reserved) before: results have addresses and
/// no memory, and read as zeros.
void compute_shapes_only();

/// Operators that were computed on large tensors, because nothing says which shapes their results have.
std::set<std::string> operators_computed_in_full();

}  // namespace hortator::machine
