#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "comm/communicator.hpp"
#include "mpi/agree.hpp"
#include "parallel/mesh/rank_group.hpp"
#include "parallel/tensor/division.hpp"

namespace hortator::parallel {

/// What the ranks of a tensor group have exchanged, as seen by one of them.
struct TensorTraffic {
  std::int64_t sums = 0;       ///< all-reduces
  std::int64_t sum_bytes = 0;  ///< of the reduced tensors
  std::int64_t gathers = 0;
  std::int64_t gather_bytes = 0;    ///< of the gathered tensors
  std::int64_t part_sums = 0;       ///< reduce-scatters
  std::int64_t part_sum_bytes = 0;  ///< of the tensors that were reduced
};

/// The ranks among which tensors are divided. Divided tensors share it; it outlives the communicators, and its
/// functions throw after close().
class TensorRanks {
 public:
  /// Borrows the communicators until close(): for tensors on the device, and for tensors on the CPU.
  TensorRanks(comm::Communicator& on_device, comm::Communicator& on_cpu)
      : on_device_(&on_device), on_cpu_(&on_cpu), index_(on_cpu.rank()), size_(on_cpu.size()) {}
  /// The same, of ranks that can agree on failures.
  explicit TensorRanks(const RankGroup& group) : TensorRanks(group.on_device, group.on_cpu) { host_ = &group.host; }

  /// Ranks that exist only on paper: this is the first of `size`. Sums are this rank's addends, and a tensor that would
  /// be gathered throws TrialFailure.
  static std::shared_ptr<TensorRanks> of_trial(int size) { return std::shared_ptr<TensorRanks>(new TensorRanks(size)); }
  bool is_trial() const { return is_trial_; }

  int index() const { return index_; }
  int size() const { return size_; }
  /// Ends the use of the communicators.
  void close() {
    on_device_ = on_cpu_ = nullptr;
    host_ = nullptr;
  }

  /// Runs work that does not communicate and may fail on one rank; then all ranks throw. Ranks that were not made from
  /// a RankGroup do not agree. @collective
  void all_or_none(const std::function<void()>& work) const { host_ ? mpi::all_or_none(*host_, work) : work(); }

  /// The sum over all ranks, in a new tensor without history. @collective
  at::Tensor sum(const at::Tensor& tensor) const;
  /// The maximum over all ranks, in a new tensor without history. @collective
  at::Tensor max(const at::Tensor& tensor) const;
  /// The whole tensor from the parts of all ranks, without history. @collective
  at::Tensor join(const at::Tensor& part, const Division& division) const;
  /// This rank's part of the sum over all ranks, without history. @collective
  at::Tensor sum_part(const at::Tensor& addend, const Division& division) const;
  /// This rank's part of a whole tensor, contiguous, without history.
  at::Tensor part_of(const at::Tensor& whole, const Division& division) const;

  /// The communicator for the device that the tensor is on, and that for tensors on the CPU. Throw after close().
  comm::Communicator& communicator_of(const at::Tensor& tensor) const;
  comm::Communicator& on_cpu() const;
  /// Ends this rank's participation in both, as Communicator::abandon() does.
  bool abandon(std::string_view reason) const noexcept;
  /// Elements of this rank's part, given by their positions in it, from those of the whole tensor that cover them
  /// (cover_of()); of one dimension.
  at::Tensor own_elements(const at::Tensor& covered, const PartRuns& runs, core::Range of_part) const;

  const TensorTraffic& traffic() const { return traffic_; }
  /// Operators without a rule for divided tensors, and how often their operands were gathered.
  const std::map<std::string, std::int64_t>& gathered() const { return gathered_; }
  /// Counts a gathered operator; an error if divided tensors must not be gathered, otherwise logged the first time.
  void note_gathered(const std::string& name, const std::string& operands) const;
  /// Makes operators without a rule an error.
  void set_strict(bool strict) { strict_ = strict; }

 private:
  explicit TensorRanks(int size) : on_device_(nullptr), on_cpu_(nullptr), index_(0), size_(size), is_trial_(true) {}
  at::Tensor reduce(const at::Tensor& tensor, comm::ReduceOp op) const;

  comm::Communicator* on_device_;
  comm::Communicator* on_cpu_;
  const mpi::Communicator* host_ = nullptr;
  int index_, size_;
  bool strict_ = false, is_trial_ = false;
  mutable TensorTraffic traffic_;  // counted by one thread at a time: collectives have one order
  mutable std::map<std::string, std::int64_t> gathered_;
};

}  // namespace hortator::parallel
