#pragma once

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// Another communicator in debug mode: before each collective all ranks compare operation, type and shape, and a rank
/// that differs is named in an error on all of them, in place of a hang or of wrong numbers.
class CheckedCommunicator final : public Communicator {
 public:
  /// `comm` has the same ranks as `inner` and is used for the comparison only.
  CheckedCommunicator(std::unique_ptr<Communicator> inner, mpi::Communicator comm)
      : inner_(std::move(inner)), comm_(std::move(comm)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string_view name() const override { return inner_->name(); }

  Work all_reduce(at::Tensor tensor, ReduceOp op) override;
  Work reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override;
  Work all_gather(at::Tensor output, const at::Tensor& input) override;
  Work broadcast(at::Tensor tensor, int root) override;
  Work broadcast_all(std::vector<at::Tensor> tensors, int root) override;
  void barrier() override;

  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override { return inner_->allocate(elements, type); }
  std::unique_ptr<Communicator> split(int color, int key) const override;

 private:
  void compare(const std::string& call) const;

  std::unique_ptr<Communicator> inner_;
  mpi::Communicator comm_;
};

}  // namespace hortator::comm
