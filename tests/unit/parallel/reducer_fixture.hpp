#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>

#include <functional>
#include <string>
#include <vector>

#include "comm/mpi/mpi_communicator.hpp"
#include "mpi/collectives.hpp"
#include "parallel/data_parallel/gradient_reducer.hpp"

namespace hortator::test {

using Log = std::vector<std::string>;

/// The worst behaviour that a back end may have: it does nothing before wait(), and adds up fp16 in fp16. Logs its
/// calls, and throws when ranks allocate different sizes.
class LazyCommunicator final : public comm::Communicator {
 public:
  explicit LazyCommunicator(Log* log = nullptr) : log_(log) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string_view name() const override { return "lazy"; }
  comm::Traits traits() const override { return inner_.traits(); }
  comm::Work all_reduce(at::Tensor tensor, comm::ReduceOp op) override {
    if (log_ != nullptr) log_->push_back("all_reduce");
    reduced_elements += tensor.numel();
    if (tensor.scalar_type() == at::kHalf) return comm::Work([this, tensor, op] { add_in_fp16(tensor, op); });
    return comm::Work([this, tensor, op] { inner_.all_reduce(tensor, op).wait(); });
  }
  comm::Work reduce_scatter(at::Tensor output, const at::Tensor& input, comm::ReduceOp op) override {
    return inner_.reduce_scatter(std::move(output), input, op);
  }
  comm::Work all_gather(at::Tensor output, const at::Tensor& input) override {
    return inner_.all_gather(std::move(output), input);
  }
  comm::Work broadcast(at::Tensor tensor, int root) override {
    if (log_ != nullptr) log_->push_back("broadcast");
    return comm::Work([this, tensor, root] { inner_.broadcast(tensor, root).wait(); });
  }
  comm::Work exchange(std::vector<comm::PeerTensor> sent, std::vector<comm::PeerTensor> received) override {
    return inner_.exchange(std::move(sent), std::move(received));
  }
  void barrier() override { inner_.barrier(); }
  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override {
    const auto sizes = mpi::all_gather(host_, elements);
    for (const auto size : sizes) {
      if (size != elements) throw std::logic_error("ranks allocate different sizes");
    }
    return inner_.allocate(elements, type).fill_(7);
  }
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) override { return allocate(elements, type); }
  std::unique_ptr<comm::Communicator> split(int color, int key) const override { return inner_.split(color, key); }

  std::int64_t reduced_elements = 0;

 private:
  void add_in_fp16(const at::Tensor& tensor, comm::ReduceOp op) {
    const auto all = at::empty({size() * tensor.numel()}, tensor.options());
    inner_.all_gather(all, tensor).wait();
    tensor.zero_();
    for (int rank = 0; rank < size(); ++rank) tensor.add_(all.narrow(0, rank * tensor.numel(), tensor.numel()));
    if (op == comm::ReduceOp::mean) tensor.div_(size());
  }

  mpi::Communicator host_ = mpi::Communicator::world();
  comm::MpiCommunicator inner_{mpi::Communicator::world()};
  Log* log_;
};

struct ReducerFixture {
  Log log;
  mpi::Communicator host = mpi::Communicator::world();
  LazyCommunicator communicator{&log};
  parallel::BackwardPass pass;
  int rank = host.rank();
  int size = host.size();
  double mean_rank = (size - 1) / 2.0;
  DistributedDataParallelOptions options;

  parallel::DataParallel parallel(parallel::SignalPath signals = parallel::SignalPath::behind_gradients,
                                  parallel::StepVotes* votes = nullptr) {
    return {.communicator = communicator,
            .host = host,
            .options = options,
            .pass = pass,
            .votes = votes,
            .signals = signals};
  }
  bool alone() const { return size == 1; }
};

inline constexpr double one_byte_buckets = 1e-9;  // a bucket for each gradient

inline at::Tensor parameter(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  return at::ones(sizes, at::TensorOptions().dtype(type)).requires_grad_();
}

inline bool all_are(const at::Tensor& tensor, double value) {
  return tensor.defined() && at::allclose(tensor, at::full_like(tensor, value));
}

}  // namespace hortator::test
