#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "comm/communicator.hpp"

namespace hortator::parallel {

/// Broadcasts buffers of any types in one message.
class BufferBroadcast {
 public:
  BufferBroadcast(std::vector<at::Tensor> buffers, comm::Communicator& communicator)
      : buffers_(std::move(buffers)), communicator_(communicator) {}

  bool empty() const { return buffers_.empty(); }
  /// Gives all ranks `root`'s buffers. @collective
  void send_from(int root);
  /// Copies of `root`'s buffers, by the TensorImpl of this rank's, which stay as they are. @collective
  std::map<const void*, at::Tensor> copies_from(int root);

 private:
  bool is_laid_out() const;
  void lay_out();
  void broadcast_from(int root);  ///< @collective

  std::vector<at::Tensor> buffers_;
  comm::Communicator& communicator_;
  at::Tensor memory_;               ///< bytes
  std::vector<at::Tensor> packed_;  ///< the buffers' copies in memory_
};

}  // namespace hortator::parallel
