#pragma once

#include <concepts>

#include "comm/communicator.hpp"
#include "mpi/agree.hpp"

namespace hortator::parallel {

/// Runs work in which the ranks of `group` exchange parts, and which may fail on one of them, for example for lack of
/// memory: the others then stop waiting for it, and all ranks of `host` throw the same error. @collective over `host`
template <std::invocable Work>
void exchange_together(const mpi::Communicator& host, comm::Communicator& group, const Work& work) {
  mpi::all_or_none(host, [&] {
    try {
      work();
    } catch (...) {
      group.abandon("a rank cannot join the parts of divided parameters");
      throw;
    }
  });
}

}  // namespace hortator::parallel
