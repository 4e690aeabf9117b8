#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"

namespace hortator::test {

/// Another communicator's collectives. Derived classes change some of them.
class ForwardingCommunicator : public comm::Communicator {
 public:
  explicit ForwardingCommunicator(comm::Communicator& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string_view name() const override { return inner_.name(); }
  comm::Traits traits() const override { return inner_.traits(); }
  comm::Work all_reduce(at::Tensor tensor, comm::ReduceOp op) override { return inner_.all_reduce(tensor, op); }
  comm::Work reduce_scatter(at::Tensor output, const at::Tensor& input, comm::ReduceOp op) override {
    return inner_.reduce_scatter(output, input, op);
  }
  comm::Work all_gather(at::Tensor output, const at::Tensor& input) override {
    return inner_.all_gather(output, input);
  }
  comm::Work broadcast(at::Tensor tensor, int root) override { return inner_.broadcast(tensor, root); }
  comm::Work exchange(std::vector<comm::PeerTensor> sent, std::vector<comm::PeerTensor> received) override {
    return inner_.exchange(std::move(sent), std::move(received));
  }
  void barrier() override { inner_.barrier(); }
  void advance() override { inner_.advance(); }
  bool abandon(std::string_view reason) noexcept override { return inner_.abandon(reason); }
  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override { return inner_.allocate(elements, type); }
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) override {
    return inner_.allocate_common(elements, type);
  }
  std::unique_ptr<comm::Communicator> split(int color, int key) const override { return inner_.split(color, key); }

 private:
  comm::Communicator& inner_;
};

}  // namespace hortator::test
