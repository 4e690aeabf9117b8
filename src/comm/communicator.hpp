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
  /// Collectives of all communicators of the back end are done on the device in the order in which they were started:
  /// the result of one may be an operand of the next before anybody has waited for it (floating-point numbers, dense).
  bool queues_on_device = false;
  /// Collectives wait for the other ranks where they are called, not where their Work is waited for.
  bool waits_at_once = false;
  /// Collectives that a rank can start before it waits for other ranks to start the first; 0: any number.
  std::size_t max_under_way = 0;
  /// The type of device whose tensors it carries. Empty: any.
  std::optional<c10::DeviceType> device = {};

  bool carries(c10::Device tensors_on) const { return !device || *device == tensors_on.type(); }
  bool operator==(const Traits&) const = default;
};

/// A tensor that travels between this rank and rank `peer`.
struct PeerTensor {
  at::Tensor tensor;
  int peer = 0;
};

/// Collectives on tensors. Every verb is @collective: all ranks call it, in the same order, with the same shapes and
/// types. Tensors may have any strides and any number of elements, zero included; results are written in place. All
/// ranks must wait for the Works of several communicators in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// For messages and profiles: "self", "mpi", "node", "nccl", "staged". Decisions are made by traits().
  virtual std::string_view name() const = 0;
  virtual Traits traits() const = 0;

  /// Replaces `tensor` by its reduction over all ranks, bitwise the same on each.
  virtual Work all_reduce(at::Tensor tensor, ReduceOp op) = 0;
  /// `input` holds size() equal parts along dimension 0. Writes the reduction of this rank's part to `output`.
  virtual Work reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) = 0;
  /// Concatenates the inputs of all ranks along dimension 0, in rank order, in `output`.
  virtual Work all_gather(at::Tensor output, const at::Tensor& input) = 0;
  virtual Work broadcast(at::Tensor tensor, int root) = 0;
  /// Broadcasts each of the tensors, all at once where the back end can.
  virtual Work broadcast_all(std::vector<at::Tensor> tensors, int root) {
    for (auto& tensor : tensors) broadcast(std::move(tensor), root).wait();
    return {};
  }
  /// Sends tensors to peers and receives others, all at once. Between two ranks, the n-th tensor sent is the
  /// n-th received: same type, same number of elements. Either list may be empty, and this rank may be a peer of its
  /// own. On a mismatch all ranks throw, and nothing has been sent.
  virtual Work exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) = 0;
  virtual void barrier() = 0;

  /// Progresses collectives under way as far as possible without waiting. Call it now and then between collectives.
  /// Local. Throws their errors.
  virtual void advance() {}

  /// Ends this rank's participation: ranks that wait for it throw Abandoned, as far as the back end can notify them.
  /// False if some may still wait. Afterwards the communicator can only be destroyed; all ranks make a new one.
  virtual bool abandon(std::string_view /*reason*/) noexcept { return false; }

  /// Zeroed memory on which this back end is fastest, since it copies nothing. @collective
  virtual at::Tensor allocate(std::int64_t elements, at::ScalarType type) = 0;
  /// Zeroed memory for data that is equal on all ranks. Where ranks share memory, a node has one array, and an
  /// all_gather into it does not copy data that is there already. @collective
  virtual at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) = 0;
  /// Ranks with the same color, ordered by key. @collective
  virtual std::unique_ptr<Communicator> split(int color, int key) const = 0;
};

}  // namespace hortator::comm
