#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/parallel/outer_optimizer.hpp>
#include <memory>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::parallel {

/// Averages a row of numbers over all ranks. The ranks of a node add theirs up whole, in shared memory; what nodes send
/// each other is packed as `wire` says.
class DifferenceExchange {
 public:
  /// `node`: the ranks of this rank's node. @collective
  DifferenceExchange(comm::Communicator& ranks, const mpi::Communicator& node, OuterWire wire);

  /// Numbers of fp32 in the row of `elements`: whole blocks and chunks.
  std::int64_t padded(std::int64_t elements) const;
  /// Replaces the row by its mean, the same bits on all ranks. With OuterWire::sparse, `unsent` of the first rank of a
  /// node times `keep` is added before, and has what was not sent afterwards. @collective
  void average(const at::Tensor& row, at::Tensor& unsent, double keep);
  /// Whether this rank sends for its node.
  bool sends() const { return node_->rank() == 0; }
  /// On a rank that sends: how many there are.
  int senders() const { return senders_->size(); }

 private:
  void exchange_int8(const at::Tensor& row);
  void exchange_sparse(const at::Tensor& row, at::Tensor& unsent, double keep);
  at::Tensor gather(const at::Tensor& mine);

  comm::Communicator& ranks_;
  OuterWire wire_;
  std::unique_ptr<comm::Communicator> node_;
  std::unique_ptr<comm::Communicator> senders_;  ///< of the ranks that have this rank's place in their nodes
};

}  // namespace hortator::parallel
