// What the room `device` asks of a kind of accelerator (src/machine/device/), in place of device/cuda/.
#include <optional>

#include "core/text/text.hpp"
#include "machine/device/device.hpp"
#include "machine/device/graph.hpp"
#include "machine/device/kind_memory.hpp"
#include "machine/device/memory.hpp"
#include "machine/device/stream.hpp"
#include "support/sim/current.hpp"
#include "support/sim/host_memory.hpp"
#include "support/sim/memory.hpp"
#include "support/sim/operators/recording.hpp"
#include "support/sim/sim.hpp"
#include "support/sim/streams.hpp"

#include <c10/core/StreamGuard.h>

namespace hortator::machine {

const DeviceKind* accelerator_kind() {
  static constexpr DeviceKind kind = {.type = c10::kPrivateUse1,
                                      .name = "sim",
                                      .title = "Sim",
                                      .build_option = "HORTATOR_WITH_SIM",
                                      .visibility = "SIM_VISIBLE_DEVICES",
                                      .tool = "sim-smi",
                                      .file_prefix = "sim",
                                      .records_steps = true,
                                      .has_fused_kernels = true};
  return &kind;
}

DeviceIdentity identify(c10::Device device) {
  return {.name = "Simulated",
          .uuid = text::concat("SIM-", int{device.index()}),
          .pci_address = text::concat("0000:0", int{device.index()}, ":00.0")};
}

std::shared_ptr<void> lock_pages(std::size_t bytes, std::string& /*reason*/) { return sim::page_locked_memory(bytes); }

void observe_out_of_memory() {
  sim::observe_out_of_memory([](int /*device*/, std::size_t asked) { report_out_of_memory(asked); });
}

// A handle is the number of a stream.
void* Stream::native() const { return reinterpret_cast<void*>(std::intptr_t{sim::number_of(stream_)}); }  // NOLINT

c10::Stream stream_of_native(void* native, c10::Device device) {
  if (native == nullptr) return sim::stream_of(sim::default_stream(device.index()));
  return sim::stream_of(static_cast<int>(reinterpret_cast<std::intptr_t>(native)));
}

struct Graph::Recorded {
  c10::Device device;
  Stream stream;
  std::unique_ptr<sim::Recording> recording = {};
};

Graph::Graph(c10::Device device) : recorded_(new Recorded{.device = device, .stream = Stream(device)}) {}
Graph::~Graph() = default;

void Graph::rehearse(const std::function<void()>& work) const {
  const auto& stream = recorded_->stream;
  stream.follow_current();
  try {
    const c10::StreamGuard guard(stream.get());
    work();
  } catch (...) {
    stream.mark().hold_current_stream();
    throw;
  }
  stream.mark().hold_current_stream();
}

void Graph::record(const std::function<void()>& work) {
  wait_until_idle(recorded_->device);
  const c10::StreamGuard guard(recorded_->stream.get());
  auto recording = sim::begin_recording(sim::number_of(recorded_->stream.get()));
  try {
    work();
  } catch (...) {
    try {
      sim::end_recording(*recording);
    } catch (const std::exception&) {  // the error of `work` is reported
    }
    throw;
  }
  sim::end_recording(*recording);
  recorded_->recording = std::move(recording);
}

void Graph::replay() { sim::replay(*recorded_->recording, sim::current_stream(recorded_->device.index())); }
void Graph::protect_memory() const { recorded_->stream.follow_current(); }

}  // namespace hortator::machine
