#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/StreamGuard.h>

#include "machine/device/graph.hpp"
#include "machine/device/stream.hpp"

namespace hortator::machine {
namespace {

void try_to(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception&) {  // another error is reported, or there is nothing to do
  }
}

// Before 2.15, a recording that ends with an error leaves LibTorch's random-number generator in recording state, which
// makes all later recordings fail. Resets the state; the sequence of numbers continues.
template <typename State = at::CUDAGeneratorState>
void reset_generator(c10::Device device) {
  if constexpr (requires(State state) { state.capturing_; }) {
    auto generator = at::cuda::detail::getDefaultCUDAGenerator(device.index());
    generator.graphsafe_set_state(generator.clone());
  }
}

/// Before 2.15, LibTorch leaves a recording that ends with an error half open: the allocators for device and
/// page-locked memory still refer to it, even after its destruction, and keep its memory.
struct Recording final : at::cuda::CUDAGraph {
  template <typename Self = Recording, typename Host = at::HostAllocator>
  void leave_pools() {
    if constexpr (!requires(Self self) { self.allocated_pool_; }) {
      if (capture_ended_) return;  // then LibTorch has left them itself
      namespace device_memory = c10::cuda::CUDACachingAllocator;
      try_to(
          [&] { device_memory::endAllocateToPool(capture_dev_, mempool_id_); });  // some versions have already done so
      try_to([&] { device_memory::releasePool(capture_dev_, mempool_id_); });
      if constexpr (requires(Host & host, c10::MempoolId_t pool) { host.end_allocate_to_pool(pool); }) {
        Host* host_memory = at::getHostAllocator(at::kCUDA);
        try_to([&] { host_memory->end_allocate_to_pool(mempool_id_); });
        try_to([&] { host_memory->release_pool(mempool_id_); });
      }
    }
  }
};

/// Calls `end` after `work`, also when `work` throws; then the error of `work` is passed on.
void do_and_end(const std::function<void()>& work, const std::function<void()>& end) {
  try {
    work();
  } catch (...) {
    try_to(end);
    throw;
  }
  end();
}

}  // namespace

struct Graph::Recorded {
  c10::Device device;
  Stream stream;
  Recording graph = {};
};

Graph::Graph(c10::Device device) : recorded_(new Recorded{.device = device, .stream = Stream(device)}) {}
Graph::~Graph() = default;

// The current stream waits even when `work` throws: it may get memory that is still in use on the other stream.
void Graph::rehearse(const std::function<void()>& work) const {
  const auto& stream = recorded_->stream;
  stream.follow_current();
  do_and_end(
      [&] {
        const c10::StreamGuard guard(stream.get());
        work();
      },
      [&] { stream.mark().hold_current_stream(); });
}

// Thread-local mode restricts only this thread: loaders continue to copy batches to page-locked memory.
void Graph::record(const std::function<void()>& work) {
  wait_until_idle(recorded_->device);
  const c10::StreamGuard guard(recorded_->stream.get());
  auto& graph = recorded_->graph;
  graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  try {
    do_and_end(work, [&] { graph.capture_end(); });
  } catch (...) {
    graph.leave_pools();
    reset_generator(recorded_->device);
    throw;
  }
}

void Graph::replay() { recorded_->graph.replay(); }
void Graph::protect_memory() const { recorded_->stream.follow_current(); }

}  // namespace hortator::machine
