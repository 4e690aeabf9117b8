#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// Ensures that all ranks can take part in an exchange and that what each sends is what its peer expects. If not, all
/// ranks throw. `check` throws where this rank cannot take part. One reduction of 16 bytes where
/// no rank throws. @collective
void agree_on_exchange(const mpi::Communicator& comm, const std::vector<PeerTensor>& sent,
                       const std::vector<PeerTensor>& received, const std::function<void()>& check);

}  // namespace hortator::comm
