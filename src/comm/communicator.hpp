#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/reduce_op.hpp"
#include "comm/work.hpp"

namespace hortator::comm {

/// What a back end offers beyond the interface. The same on all ranks.
struct Traits {
  /// allocate_common() gives all ranks of a node the same memory.
  bool shares_memory = false;
  /// Ranks of a node that call different collectives throw, also outside debug mode. Without it they may wait for each
  /// other for ever or exchange wrong data: callers that cannot rule that out use a CheckedCommunicator.
  bool finds_mismatch = false;
  /// The type of device whose tensors it carries. Empty: any.
  std::optional<c10::DeviceType> device = {};

  bool carries(c10::Device tensors_on) const { return !device || *device == tensors_on.type(); }
  bool operator==(const Traits&) const = default;
};

/// Collectives on tensors. Every verb is @collective: all ranks, the same order, the same shapes and types.
/// Tensors may have any strides; results are written in place. Any number of elements, zero included. Works of several
/// communicators are waited for in the same order on all ranks.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// For messages and profiles: "self", "mpi", "node", "nccl", "staged". Decisions are made by traits().
  virtual std::string_view name() const = 0;
  virtual Traits traits() const = 0;

  /// `tensor` becomes the reduction over all ranks, bitwise the same on each.
  virtual Work all_reduce(at::Tensor tensor, ReduceOp op) = 0;
  /// `input` is size() equal parts along dimension 0; `output` becomes the reduction of this rank's part.
  virtual Work reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) = 0;
  /// `output` becomes the inputs of all ranks along dimension 0, in rank order.
  virtual Work all_gather(at::Tensor output, const at::Tensor& input) = 0;
  virtual Work broadcast(at::Tensor tensor, int root) = 0;
  /// The same for each of them, all under way together where the back end can.
  virtual Work broadcast_all(std::vector<at::Tensor> tensors, int root) {
    for (auto& tensor : tensors) broadcast(std::move(tensor), root).wait();
    return {};
  }
  virtual void barrier() = 0;

  /// Moves on what is under way, as far as that goes without waiting; to be called now and then between collectives.
  /// Not @collective. Throws what goes wrong.
  virtual void advance() {}

  /// This rank takes part no more: others who wait for it throw Abandoned, as far as the back end can tell them. False
  /// if some may wait on. From now on only its destruction is of use; all ranks make a new one in its place.
  virtual bool abandon(std::string_view /*reason*/) noexcept { return false; }

  /// Memory in which this back end works fastest (no copy in, no copy out). Zeroed. @collective
  virtual at::Tensor allocate(std::int64_t elements, at::ScalarType type) = 0;
  /// Memory for what all ranks hold alike: where ranks can share it, there is one array for all of a node, and an
  /// all_gather into it moves nothing that is there already. Zeroed. @collective
  virtual at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) = 0;
  /// Ranks with the same color, ordered by key. @collective
  virtual std::unique_ptr<Communicator> split(int color, int key) const = 0;
};

}  // namespace hortator::comm
