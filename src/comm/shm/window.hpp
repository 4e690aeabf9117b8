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
  bool is_common;   ///< one array of the whole node; else one for each rank
  mpi::SharedMemory memory;
};

/// Where in a segment an operand lies.
struct NodePlace {
  std::shared_ptr<const NodeSegment> segment;
  std::int64_t offset = 0;  ///< bytes from the start of the rank's part, or of the common array

  /// The same place as `rank` has it.
  std::byte* of(int rank) const { return segment->memory.part(segment->is_common ? 0 : rank) + offset; }
};

/// The memory of tensors that lie in reach of all ranks of a node. A tensor keeps its segment alive; other ranks may
/// still read it when this one has let go.
class NodeWindow {
 public:
  /// `node` is a part of `all`: memory that one node cannot give is an error on all.
  NodeWindow(const mpi::Communicator& node, const mpi::Communicator& all) : node_(node), all_(all) {}

  /// Zeroed. All ranks ask for the same. @collective
  at::Tensor allocate(std::int64_t elements, at::ScalarType type);
  /// One array for all ranks of the node. @collective
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type);

  /// Nothing when `tensor` lies elsewhere.
  std::optional<NodePlace> find(const at::Tensor& tensor) const;

 private:
  at::Tensor make(std::int64_t elements, at::ScalarType type, bool is_common);

  const mpi::Communicator& node_;
  const mpi::Communicator& all_;
  std::int64_t next_id_ = 0;
  std::map<const std::byte*, std::weak_ptr<const NodeSegment>> segments_;  ///< by where this rank's view begins
};

}  // namespace hortator::comm
