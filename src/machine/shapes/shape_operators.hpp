#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

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

/// While it lives, no operator that this thread calls reads or writes an element, so that tensors without memory can be
/// arguments: results have the right shapes, types and sizes, and any elements. An operator that needs elements to tell
/// the shapes of its results, or their values, throws NeedsElements.
class ShapesAlone {
 public:
  ShapesAlone();
  ~ShapesAlone();
  ShapesAlone(const ShapesAlone&) = delete;
  ShapesAlone& operator=(const ShapesAlone&) = delete;

 private:
  bool was_alone_;
  c10::impl::IncludeDispatchKeyGuard on_;
};

/// What an operator throws where there are shapes alone.
struct NeedsElements {
  std::string op;
};

}  // namespace hortator::machine
