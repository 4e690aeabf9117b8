#pragma once

#include <memory>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

class MpiExchange;

/// The back end `mpi` for CPU tensors. Every verb but exchange() is done when it returns. Non-contiguous data is packed
/// first; long tensors are split into several MPI calls.
class MpiCommunicator final : public Communicator {
 public:
  static constexpr Traits back_end_traits = {.waits_at_once = true, .device = c10::kCPU};
  /// Elements of one MPI call. MPI's counts are int, and some libraries overflow earlier, on bytes.
  static constexpr std::int64_t default_piece = std::int64_t{1} << 28;

  explicit MpiCommunicator(mpi::Communicator comm, std::int64_t piece_elements = default_piece)
      : comm_(std::move(comm)), piece_(piece_elements) {}

  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  std::string_view name() const override { return "mpi"; }
  Traits traits() const override { return back_end_traits; }

  Work all_reduce(at::Tensor tensor, ReduceOp op) override;
  Work reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override;
  Work all_gather(at::Tensor output, const at::Tensor& input) override;
  Work broadcast(at::Tensor tensor, int root) override;
  Work exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) override;
  void barrier() override;
  /// Lets messages of exchange() travel.
  void advance() override;

  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override;
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) override;
  std::unique_ptr<Communicator> split(int color, int key) const override;

 private:
  void broadcast_packed(const at::Tensor& packed, int root);

  mpi::Communicator comm_;
  std::int64_t piece_;
  std::weak_ptr<const MpiExchange> newest_exchange_;  ///< expired: no messages are under way
};

}  // namespace hortator::comm
