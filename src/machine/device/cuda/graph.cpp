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
  } catch (const std::exception&) {  // there is another error to tell, or nothing to do
  }
}

// Before 2.15 LibTorch leaves its generator of random numbers in the state of a recording when that ends with an error:
// all later ones would be refused. The generator goes on from where it was.
template <typename State = at::CUDAGeneratorState>
void leave_recording(int device) {
  if constexpr (requires(State state) { state.capturing_; }) {
    auto generator = at::cuda::detail::getDefaultCUDAGenerator(static_cast<c10::DeviceIndex>(device));
    generator.graphsafe_set_state(generator.clone());
  }
}

/// LibTorch before 2.15 leaves a recording that ends with an error half open: its allocators, of the device and of
/// page-locked memory, go on asking it whose memory they give out, also when it has gone, and keep what it had.
struct Recording final : at::cuda::CUDAGraph {
  template <typename Self = Recording, typename Host = at::HostAllocator>
  void leave_pools() {
    if constexpr (!requires(Self self) { self.allocated_pool_; }) {
      if (capture_ended_) return;  // then it leaves them itself
      namespace device_memory = c10::cuda::CUDACachingAllocator;
      try_to([&] { device_memory::endAllocateToPool(capture_dev_, mempool_id_); });  // some versions have, by then
      try_to([&] { device_memory::releasePool(capture_dev_, mempool_id_); });
      if constexpr (requires(Host & host, c10::MempoolId_t pool) { host.end_allocate_to_pool(pool); }) {
        Host* host_memory = at::getHostAllocator(at::kCUDA);
        try_to([&] { host_memory->end_allocate_to_pool(mempool_id_); });
        try_to([&] { host_memory->release_pool(mempool_id_); });
      }
    }
  }
};

/// `end` comes after `work` even when that throws. Then its error is the one to tell.
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
  int device;
  Stream stream;
  Recording graph = {};
};

Graph::Graph(int device) : recorded_(new Recorded{.device = device, .stream = Stream(device)}) {}
Graph::~Graph() = default;

// Also when the work throws: the current stream may be given what belongs to work that is still under way there.
void Graph::rehearse(const std::function<void()>& work) const {
  const auto& stream = recorded_->stream;
  stream.follow_current();
  do_and_end(
      [&] {
        const c10::StreamGuard there(stream.get());
        work();
      },
      [&] { stream.mark().hold_current_stream(); });
}

// Only this thread is held to what can be recorded: loaders go on putting batches into page-locked memory meanwhile.
void Graph::record(const std::function<void()>& work) {
  wait_until_idle(recorded_->device);
  const c10::StreamGuard there(recorded_->stream.get());
  auto& graph = recorded_->graph;
  graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  try {
    do_and_end(work, [&] { graph.capture_end(); });
  } catch (...) {
    graph.leave_pools();
    leave_recording(recorded_->device);
    throw;
  }
}

void Graph::replay() { recorded_->graph.replay(); }

}  // namespace hortator::machine
