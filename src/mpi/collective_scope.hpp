#pragma once

#include "core/activity/activity.hpp"
#include "mpi/communicator.hpp"

namespace hortator::mpi {

/// While it exists, this thread is in a collective of `comm`: the watchdog sees it. In debug mode the constructor
/// compares the ranks' calls. Collectives called within it are part of it.
class CollectiveScope {
 public:
  CollectiveScope(const Communicator& comm, const Call& call)
      : here_(comm.membership(), call.verb, call.bytes), comm_(comm) {
    if (comm_.check_ && comm_.depth_ == 0) comm_.check_->compare(call);
    ++comm_.depth_;
  }
  ~CollectiveScope() { --comm_.depth_; }
  CollectiveScope(const CollectiveScope&) = delete;
  CollectiveScope& operator=(const CollectiveScope&) = delete;

 private:
  activity::Collective here_;
  const Communicator& comm_;
};

}  // namespace hortator::mpi
