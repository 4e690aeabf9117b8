#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/exchange_plan.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// Messages under way between ranks that have agreed on them.
class MpiExchange {
 public:
  /// Starts to send and receive the buffers of the peers for which `includes` is true, in messages of at most `piece`
  /// bytes. What it sends is what the peers expect. Does not wait for them. @collective over these peers
  MpiExchange(const mpi::Communicator& comm, std::shared_ptr<const PeerBuffers> buffers, std::int64_t piece,
              const std::function<bool(int peer)>& includes);
  /// Without wait(), the buffers are never freed, since MPI still uses them.
  ~MpiExchange();
  MpiExchange(const MpiExchange&) = delete;
  MpiExchange& operator=(const MpiExchange&) = delete;

  /// Waits for all messages. @collective over these peers
  void wait();

 private:
  std::shared_ptr<const PeerBuffers> buffers_;
  std::vector<MPI_Request> requests_;
};

}  // namespace hortator::comm
