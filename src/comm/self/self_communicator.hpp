#pragma once

#include "comm/communicator.hpp"

namespace hortator::comm {

/// The back end `self` for one rank and any device. Every verb gives the result that it would give with more ranks, so
/// that callers need not treat one rank separately.
class SelfCommunicator final : public Communicator {
 public:
  /// One rank shares its memory with all ranks of the communicator, and cannot differ from itself.
  static constexpr Traits back_end_traits = {.shares_memory = true, .finds_mismatch = true};

  explicit SelfCommunicator(c10::Device device) : device_(device) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string_view name() const override { return "self"; }
  Traits traits() const override { return back_end_traits; }

  Work all_reduce(at::Tensor tensor, ReduceOp op) override;
  Work reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override;
  Work all_gather(at::Tensor output, const at::Tensor& input) override;
  Work broadcast(at::Tensor tensor, int root) override;
  Work exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) override;
  void barrier() override {}
  bool abandon(std::string_view /*reason*/) noexcept override { return true; }  // no other rank waits

  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override;
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) override;
  std::unique_ptr<Communicator> split(int color, int key) const override;

 private:
  c10::Device device_;
};

}  // namespace hortator::comm
