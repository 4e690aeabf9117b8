#pragma once

#include <cstdint>
#include <functional>

#include "comm/exchange_plan.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// Sends and receives the buffers of the peers for which `includes` is true, in messages of at most `piece` bytes, and
/// waits for them. What it sends is what the peers expect. @collective over these peers
void exchange_by_mpi(const mpi::Communicator& comm, const PeerBuffers& buffers, std::int64_t piece,
                     const std::function<bool(int peer)>& includes);

}  // namespace hortator::comm
