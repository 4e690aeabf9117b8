#pragma once

#include "comm/communicator.hpp"
#include "core/activity/activity.hpp"

namespace hortator::comm {

/// Reports the collectives of another communicator to the watchdog and to profiles: their start and the waits for them.
class WatchedCommunicator final : public Communicator {
 public:
  /// `membership` is this rank's membership in `inner`, used by nothing else.
  WatchedCommunicator(std::unique_ptr<Communicator> inner, activity::Membership membership)
      : inner_(std::move(inner)), membership_(std::move(membership)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string_view name() const override { return inner_->name(); }
  Traits traits() const override { return inner_->traits(); }

  Work all_reduce(at::Tensor tensor, ReduceOp op) override;
  Work reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override;
  Work all_gather(at::Tensor output, const at::Tensor& input) override;
  Work broadcast(at::Tensor tensor, int root) override;
  Work broadcast_all(std::vector<at::Tensor> tensors, int root) override;
  Work exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) override;
  void barrier() override;
  void advance() override { inner_->advance(); }
  bool abandon(std::string_view reason) noexcept override { return inner_->abandon(reason); }

  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override;
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) override;
  std::unique_ptr<Communicator> split(int color, int key) const override;

 private:
  std::unique_ptr<Communicator> inner_;
  activity::Membership membership_;
};

}  // namespace hortator::comm
