#include "comm/decorators/watched_communicator.hpp"

#include "comm/collective_range.hpp"

namespace hortator::comm {
namespace {

// The back end may still refuse it: undefined, sparse.
std::uint64_t bytes_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size() : 0;
}

template <typename Call>
auto watched(const activity::Operation& operation, std::string_view backend, const Call& call) {
  const activity::Collective here(operation);
  const CollectiveRange range(operation, backend);
  return call();
}

template <typename Start>
Work watched_work(const activity::Operation& operation, std::string_view backend, const Start& start) {
  Work work = watched(operation, backend, start);
  work.name_wait(operation, backend);
  return work;
}

}  // namespace

Work WatchedCommunicator::all_reduce(at::Tensor tensor, ReduceOp op) {
  const auto operation = membership_.begin("all_reduce", bytes_of(tensor));
  return watched_work(operation, name(), [&] { return inner_->all_reduce(std::move(tensor), op); });
}

Work WatchedCommunicator::reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) {
  const auto operation = membership_.begin("reduce_scatter", bytes_of(input));
  return watched_work(operation, name(), [&] { return inner_->reduce_scatter(std::move(output), input, op); });
}

Work WatchedCommunicator::all_gather(at::Tensor output, const at::Tensor& input) {
  const auto operation = membership_.begin("all_gather", bytes_of(output));
  return watched_work(operation, name(), [&] { return inner_->all_gather(std::move(output), input); });
}

Work WatchedCommunicator::broadcast(at::Tensor tensor, int root) {
  const auto operation = membership_.begin("broadcast", bytes_of(tensor));
  return watched_work(operation, name(), [&] { return inner_->broadcast(std::move(tensor), root); });
}

Work WatchedCommunicator::broadcast_all(std::vector<at::Tensor> tensors, int root) {
  std::uint64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += bytes_of(tensor);
  const auto operation = membership_.begin("broadcast_all", bytes);
  return watched_work(operation, name(), [&] { return inner_->broadcast_all(std::move(tensors), root); });
}

// Without its bytes, which differ between ranks: the watchdog would take it for different calls.
Work WatchedCommunicator::exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) {
  const auto operation = membership_.begin("exchange", 0);
  return watched_work(operation, name(), [&] { return inner_->exchange(std::move(sent), std::move(received)); });
}

void WatchedCommunicator::barrier() {
  watched(membership_.begin("barrier", 0), name(), [&] { return inner_->barrier(); });
}

at::Tensor WatchedCommunicator::allocate(std::int64_t elements, at::ScalarType type) {
  return watched(membership_.begin("allocate", 0), name(), [&] { return inner_->allocate(elements, type); });
}

at::Tensor WatchedCommunicator::allocate_common(std::int64_t elements, at::ScalarType type) {
  return watched(membership_.begin("allocate_common", 0), name(),
                 [&] { return inner_->allocate_common(elements, type); });
}

std::unique_ptr<Communicator> WatchedCommunicator::split(int color, int key) const {
  auto part = watched(membership_.begin("split", 0), name(), [&] { return inner_->split(color, key); });
  const int size = part->size();
  return std::make_unique<WatchedCommunicator>(std::move(part), membership_.derive(color, size));
}

}  // namespace hortator::comm
