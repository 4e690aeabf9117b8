#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "mpi/communicator.hpp"
#include "mpi/shared_memory.hpp"

namespace hortator::comm {

/// One allocation that all ranks of the node map.
struct NodeSegment {
  std::int64_t id;  ///< the same on all ranks
  bool is_common;   ///< one array for the whole node; otherwise one for each rank
  mpi::SharedMemory memory;
};

/// The position of an operand in a segment.
struct WindowPosition {
  std::shared_ptr<const NodeSegment> segment;
  std::int64_t offset = 0;  ///< bytes from the start of the rank's part, or of the common array

  /// The address of this position in the part of `rank`.
  std::byte* address_in(int rank) const { return segment->memory.part(segment->is_common ? 0 : rank) + offset; }
};

/// Memory for tensors that all ranks of a node can access. A tensor keeps its segment alive. Other ranks may still read
/// a segment after this rank has released it.
class NodeWindow {
 public:
  /// `node` is a part of `all`. If one node cannot provide memory, all ranks of `all` throw.
  NodeWindow(const mpi::Communicator& node, const mpi::Communicator& all) : node_(node), all_(all) {}

  /// Zeroed memory for each rank. All ranks pass the same arguments. @collective
  at::Tensor allocate(std::int64_t elements, at::ScalarType type);
  /// One array for all ranks of the node. @collective
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type);

  /// The position of `tensor`. Empty when it is not in the window.
  std::optional<WindowPosition> find(const at::Tensor& tensor) const;

 private:
  at::Tensor make(std::int64_t elements, at::ScalarType type, bool is_common);

  const mpi::Communicator& node_;
  const mpi::Communicator& all_;
  std::int64_t next_id_ = 0;
  std::map<const std::byte*, std::weak_ptr<const NodeSegment>>
      segments_;  ///< by the address at which this rank's view begins
};

}  // namespace hortator::comm
