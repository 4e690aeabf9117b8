#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.hpp"
#include "comm/decorators/call_comparison.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// Debug mode of another communicator: before each collective all ranks compare their calls (operation, type, shape,
/// root, whatever the back end would refuse, and call site in the user's program). Where they differ, all ranks throw.
class CheckedCommunicator final : public Communicator {
 public:
  /// `inner` and `comparison` have the same ranks.
  CheckedCommunicator(std::unique_ptr<Communicator> inner, std::shared_ptr<const CallComparison> comparison)
      : inner_(std::move(inner)), comparison_(std::move(comparison)) {}
  /// `comm` is used for the comparison only.
  CheckedCommunicator(std::unique_ptr<Communicator> inner, mpi::Communicator comm)
      : CheckedCommunicator(std::move(inner), std::make_shared<CallComparison>(std::move(comm))) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string_view name() const override { return inner_->name(); }
  Traits traits() const override {
    auto traits = inner_->traits();
    traits.waits_at_once = true;
    return traits;
  }

  Work all_reduce(at::Tensor tensor, ReduceOp op) override;
  Work reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override;
  Work all_gather(at::Tensor output, const at::Tensor& input) override;
  Work broadcast(at::Tensor tensor, int root) override;
  Work broadcast_all(std::vector<at::Tensor> tensors, int root) override;
  Work exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) override;
  void barrier() override;
  void advance() override { inner_->advance(); }
  /// Other ranks may wait in the comparison, which uses MPI and cannot be interrupted.
  bool abandon(std::string_view reason) noexcept override { return inner_->abandon(reason) && size() == 1; }

  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override;
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) override;
  std::unique_ptr<Communicator> split(int color, int key) const override;

 private:
  struct Call {
    std::string_view verb;
    std::string_view detail = {};             ///< the reduction
    std::optional<std::int64_t> number = {};  ///< the root, or how many elements
    const at::Tensor* first = nullptr;
    const at::Tensor* second = nullptr;  ///< the output, if it does not fit the input
    const std::vector<at::Tensor>* list = nullptr;
    std::string refusal = {};  ///< why the back end will refuse a tensor, which it may do on this rank only

    std::vector<at::Tensor> tensors() const;
  };
  void compare(const Call& call) const;
  static std::string describe(const Call& call);

  std::unique_ptr<Communicator> inner_;
  std::shared_ptr<const CallComparison> comparison_;
};

}  // namespace hortator::comm
