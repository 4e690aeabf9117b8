#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.hpp"

namespace hortator::parallel {

/// How rows lie that the ranks of a group have sent to one of them. Pure.
struct ArrivedRows {
  std::vector<std::int64_t> from = {};    ///< rows of each rank
  std::vector<std::int64_t> counts = {};  ///< rows for each of this rank's experts
  std::vector<std::int64_t> order = {};   ///< the positions of the first expert's rows, then of the second's, ..
};

/// `arrived` are the rows that each rank sends for each of this rank's experts: rank by rank, each in the order of the
/// experts.
ArrivedRows arrange(const std::vector<std::int64_t>& arrived, int ranks);

/// Rows that travel to the ranks of their experts and back. Rank r of `ranks` has the r-th part of the experts.
class TokenExchange {
 public:
  /// This rank has `counts` rows for each of all experts. The communicators must outlive backward: for tensors on the
  /// device, and for those on the CPU. @collective
  TokenExchange(const std::vector<std::int64_t>& counts, comm::Communicator& on_device, comm::Communicator& on_cpu);

  /// The rows that this rank's experts get, in the order of the experts. @collective
  at::Tensor send(const at::Tensor& rows) const;
  /// Gives the ranks back what experts have computed of their rows. @collective
  at::Tensor give_back(const at::Tensor& rows) const;
  /// Of each of this rank's experts.
  const std::vector<std::int64_t>& counts() const { return arrived_.counts; }

 private:
  comm::Communicator& over_;
  std::vector<std::int64_t> to_;  ///< rows for each rank
  ArrivedRows arrived_;
};

}  // namespace hortator::parallel
