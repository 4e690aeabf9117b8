#pragma once

#include <utility>

#include "comm/communicator.hpp"

namespace hortator::comm {

/// Carries tensors of a device with a back end for CPU tensors, through host memory: for ranks that share a device.
/// Every verb waits for the device, and so does Work::wait().
class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(std::unique_ptr<Communicator> inner, c10::Device device)
      : inner_(std::move(inner)), device_(device) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string_view name() const override { return "staged"; }
  /// Those of the inner communicator, but for this device, whose memory ranks do not share.
  Traits traits() const override {
    const auto inner = inner_->traits();
    return {.finds_mismatch = inner.finds_mismatch,
            .waits_at_once = inner.waits_at_once,
            .max_under_way = inner.max_under_way,
            .device = device_.type()};
  }

  Work all_reduce(at::Tensor tensor, ReduceOp op) override;
  Work reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override;
  Work all_gather(at::Tensor output, const at::Tensor& input) override;
  Work broadcast(at::Tensor tensor, int root) override { return broadcast_all({std::move(tensor)}, root); }
  Work broadcast_all(std::vector<at::Tensor> tensors, int root) override;
  Work exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) override;
  void barrier() override { inner_->barrier(); }
  void advance() override { inner_->advance(); }

  bool abandon(std::string_view reason) noexcept override { return inner_->abandon(reason); }

  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override;
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) override { return allocate(elements, type); }
  std::unique_ptr<Communicator> split(int color, int key) const override;

 private:
  std::unique_ptr<Communicator> inner_;
  c10::Device device_;
};

}  // namespace hortator::comm
