#pragma once

#include <string>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// The back end of a rehearsal: checks operands as all others do, notes what would travel, and moves nothing. Results
/// of small collectives are those of ranks that all have this rank's tensors; large ones stay as they are. Behaves as
/// the back end that the ranks would use (`traits`), also in which memory it allocates.
class RehearsedCommunicator final : public Communicator {
 public:
  RehearsedCommunicator(mpi::Communicator comm, Traits traits, c10::Device device)
      : comm_(std::move(comm)), traits_(traits), device_(device) {}

  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  std::string_view name() const override { return "rehearsed"; }
  Traits traits() const override { return traits_; }

  Work all_reduce(at::Tensor tensor, ReduceOp op) override;
  Work reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override;
  Work all_gather(at::Tensor output, const at::Tensor& input) override;
  Work broadcast(at::Tensor tensor, int root) override;
  Work exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) override;
  void barrier() override;

  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override;
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) override;
  std::unique_ptr<Communicator> split(int color, int key) const override;

 private:
  void note(const std::string& verb, std::uint64_t bytes) const;

  mpi::Communicator comm_;
  Traits traits_;
  c10::Device device_;
};

}  // namespace hortator::comm
