#pragma once

#include <functional>
#include <hortator/training/state_dict.hpp>

#include "mpi/communicator.hpp"

namespace hortator::step {

/// Gives all ranks the state of `root`'s object: `save` is called on `root`, `load` on the others, with tensors on the
/// CPU. If either throws on some rank, all throw. @collective
void broadcast_state(const mpi::Communicator& host, int root, const std::function<StateDict()>& save,
                     const std::function<void(const StateDict&)>& load);

}  // namespace hortator::step
