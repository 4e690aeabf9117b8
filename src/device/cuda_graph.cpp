#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/StreamGuard.h>

#include "device/graph.hpp"
#include "device/stream.hpp"

namespace hortator::device {

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
    work();
  } catch (...) {
    try {
      graph.capture_end();
    } catch (const std::exception&) {  // the first one is the one to tell
    }
    throw;
  }
  graph.capture_end();
}

void Graph::replay() { recorded_->graph.replay(); }

}  // namespace hortator::device
