#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/StreamGuard.h>

#include "device/graph.hpp"
#include "device/stream.hpp"

namespace hortator::device {

namespace {

// Before 2.15 LibTorch leaves its generator of random numbers in the state of a recording when that ends with an error:
// all later ones would be refused. The generator goes on from where it was.
template <typename State = at::CUDAGeneratorState>
void leave_recording(int device) {
  if constexpr (requires(State state) { state.capturing_; }) {
    auto generator = at::cuda::detail::getDefaultCUDAGenerator(static_cast<c10::DeviceIndex>(device));
    generator.graphsafe_set_state(generator.clone());
  }
}

}  // namespace

struct Graph::Recorded {
  int device;
  Stream stream;
  at::cuda::CUDAGraph graph = {};
};

Graph::Graph(int device) : recorded_(new Recorded{.device = device, .stream = Stream(device)}) {}
Graph::~Graph() = default;

void Graph::rehearse(const std::function<void()>& work) const {
  recorded_->stream.follow_current();
  {
    const c10::StreamGuard there(recorded_->stream.get());
    work();
  }
  recorded_->stream.mark().hold_current_stream();
}

// Only this thread is held to what can be recorded: loaders go on putting batches into page-locked memory meanwhile.
void Graph::record(const std::function<void()>& work) {
  wait_until_idle(recorded_->device);
  const c10::StreamGuard there(recorded_->stream.get());
  auto& graph = recorded_->graph;
  graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  try {
    try {
      work();
    } catch (...) {
      try {
        graph.capture_end();
      } catch (const std::exception&) {  // the first one is the one to tell
      }
      throw;
    }
    graph.capture_end();
  } catch (...) {
    leave_recording(recorded_->device);
    throw;
  }
}

void Graph::replay() { recorded_->graph.replay(); }

}  // namespace hortator::device
