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
  bool has_same_bytes = true;  ///< on all ranks: texts may differ
};

/// Whether all ranks are about to do the same: debug mode.
class CallCheck {
 public:
  virtual ~CallCheck() = default;
  /// All throw where they differ. @collective
  virtual void compare(const Call& call) const = 0;
};

}  // namespace hortator::mpi
