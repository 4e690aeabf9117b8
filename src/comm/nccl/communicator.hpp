#pragma once

#include "comm/communicator.hpp"
#include "comm/nccl/backend.hpp"
#include "comm/nccl/handle.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// The back end `nccl` for device tensors, on a stream of its own. A verb returns at once; its work starts after what
/// the current stream has been given. Work::wait makes the current stream wait for the result, never the calling
/// thread. Non-contiguous data is packed first and unpacked in wait(), on the current stream. Until wait() a tensor
/// belongs to NCCL.
class NcclCommunicator final : public Communicator {
 public:
  /// `comm` has the same ranks as `handle`. It carries agreements only, no tensors.
  NcclCommunicator(mpi::Communicator comm, c10::Device device, std::shared_ptr<NcclHandle> handle)
      : comm_(std::move(comm)), device_(device), handle_(std::move(handle)) {}

  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  std::string_view name() const override { return "nccl"; }
  Traits traits() const override { return nccl_traits; }

  Work all_reduce(at::Tensor tensor, ReduceOp op) override;
  Work reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override;
  Work all_gather(at::Tensor output, const at::Tensor& input) override;
  Work broadcast(at::Tensor tensor, int root) override;
  /// All tensors in one group call: many small ones cost about as much as one.
  Work broadcast_all(std::vector<at::Tensor> tensors, int root) override;
  /// MPI compares the sizes first; the host waits for that, not for the devices.
  Work exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) override;
  /// Also waits for the devices: all work on the ranks' current streams is done.
  void barrier() override;
  /// Aborts all NCCL communicators of this process and, where all ranks are on one node, those of the others.
  bool abandon(std::string_view reason) noexcept override { return handle_->abandon(reason); }

  /// @collective
  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override;
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) override { return allocate(elements, type); }
  std::unique_ptr<Communicator> split(int color, int key) const override;

 private:
  mpi::Communicator comm_;
  c10::Device device_;
  std::shared_ptr<NcclHandle> handle_;
};

}  // namespace hortator::comm
