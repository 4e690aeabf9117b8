#pragma once

#include <cstdint>
#include <string_view>

#include "core/activity/activity.hpp"

namespace hortator::mpi {

/// A collective on host values that this rank is about to enter.
struct Call {
  activity::Name verb = "";
  std::uint64_t bytes = 0;
  std::string_view detail = {};  ///< the operation of a reduction
  int root = -1;
  bool has_same_bytes = true;  ///< on all ranks; texts may differ in length
};

/// Debug mode: compares the ranks' calls before each collective.
class CallCheck {
 public:
  virtual ~CallCheck() = default;
  /// Throws on all ranks where the calls differ. @collective
  virtual void compare(const Call& call) const = 0;
};

}  // namespace hortator::mpi
