#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/nccl/backend.hpp"
#include "support/gpu.hpp"

/// The real nccl back end for the communicator's suites, whose tensors are on the CPU: none where there is no device.
namespace hortator::test {

inline const c10::Device gpu(c10::kCUDA, 0);

/// Takes tensors to the device, and brings results back when they are waited for.
class ThroughDevice final : public comm::Communicator {
 public:
  explicit ThroughDevice(std::unique_ptr<comm::Communicator> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string_view name() const override { return inner_->name(); }
  comm::Traits traits() const override { return inner_->traits(); }
  comm::Work all_reduce(at::Tensor tensor, comm::ReduceOp op) override {
    const auto there = tensor.to(gpu);
    return bring_back({{there, tensor}}, inner_->all_reduce(there, op));
  }
  comm::Work reduce_scatter(at::Tensor output, const at::Tensor& input, comm::ReduceOp op) override {
    const auto there = output.to(gpu);
    return bring_back({{there, output}}, inner_->reduce_scatter(there, input.to(gpu), op));
  }
  comm::Work all_gather(at::Tensor output, const at::Tensor& input) override {
    const auto there = output.to(gpu);
    return bring_back({{there, output}}, inner_->all_gather(there, input.to(gpu)));
  }
  comm::Work broadcast(at::Tensor tensor, int root) override { return broadcast_all({std::move(tensor)}, root); }
  comm::Work broadcast_all(std::vector<at::Tensor> tensors, int root) override {
    Results results;
    std::vector<at::Tensor> there;
    for (const auto& tensor : tensors) {
      there.push_back(tensor.to(gpu));
      results.emplace_back(there.back(), tensor);
    }
    return bring_back(std::move(results), inner_->broadcast_all(std::move(there), root));
  }
  comm::Work exchange(std::vector<comm::PeerTensor> sent, std::vector<comm::PeerTensor> received) override {
    Results results;
    for (auto& [tensor, peer] : sent) tensor = tensor.defined() ? tensor.to(gpu) : tensor;
    for (auto& [tensor, peer] : received) {
      auto there = tensor.to(gpu);
      results.emplace_back(there, std::exchange(tensor, there));
    }
    return bring_back(std::move(results), inner_->exchange(std::move(sent), std::move(received)));
  }
  void barrier() override { inner_->barrier(); }
  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override { return inner_->allocate(elements, type); }
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) override {
    return inner_->allocate_common(elements, type);
  }
  std::unique_ptr<comm::Communicator> split(int color, int key) const override {
    return std::make_unique<ThroughDevice>(inner_->split(color, key));
  }

 private:
  using Results = std::vector<std::pair<at::Tensor, at::Tensor>>;

  static comm::Work bring_back(Results results, comm::Work work) {
    auto under_way = std::make_shared<comm::Work>(std::move(work));
    return comm::Work([results = std::move(results), under_way] {
      under_way->wait();
      for (const auto& [there, here] : results) here.copy_(there);
    });
  }

  std::unique_ptr<comm::Communicator> inner_;
};

inline std::vector<std::string> backends() {
  return has_gpu() ? std::vector<std::string>{"nccl", "a part of nccl"} : std::vector<std::string>{};
}

inline std::unique_ptr<comm::Communicator> make_backend(const std::string& name) {
  auto whole = comm::make_nccl_communicator(mpi::Communicator::world(), gpu, std::chrono::minutes(1));
  auto part = name == "nccl" ? std::move(whole) : whole->split(0, whole->rank());
  return std::make_unique<ThroughDevice>(std::move(part));
}

}  // namespace hortator::test
