// Streams, events and devices, as LibTorch's generic code uses them.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "support/sim/current.hpp"
#include "support/sim/memory.hpp"
#include "support/sim/sim.hpp"
#include "support/sim/streams.hpp"

namespace hortator::sim {
namespace {

// As in LibTorch's guard for CUDA, functions of events choose the event's device and then the former one, which makes a
// context on both.
class EventDevice {
 public:
  explicit EventDevice(int device) : before_(current_device()) { set_current_device(device); }
  ~EventDevice() { set_current_device(before_); }
  EventDevice(const EventDevice&) = delete;
  EventDevice& operator=(const EventDevice&) = delete;

 private:
  int before_;
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  c10::Device exchangeDevice(c10::Device next) const override { return device(exchange_current_device(next.index())); }
  c10::Device getDevice() const override { return device(current_device()); }
  void setDevice(c10::Device next) const override { set_current_device(next.index()); }
  void uncheckedSetDevice(c10::Device next) const noexcept override { return_to_device(next.index()); }
  c10::Stream getStream(c10::Device of) const override { return stream_of(current_stream(index(of))); }
  c10::Stream getDefaultStream(c10::Device of) const override { return stream_of(default_stream(index(of))); }
  c10::Stream getStreamFromGlobalPool(c10::Device of, bool) const override {
    return stream_of(next_pool_stream(index(of)));
  }
  c10::Stream exchangeStream(c10::Stream next) const override {
    const auto before = current_stream(next.device_index());
    set_current_stream(number_of(next));
    return stream_of(before);
  }
  c10::DeviceIndex deviceCount() const noexcept override { return devices; }
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    const EventDevice scope(stream.device_index());
    if (*event == nullptr) *event = new Event;
    sim::record(event_at(*event), number_of(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    const EventDevice scope(stream.device_index());
    hold(number_of(stream), event_at(event));
  }
  bool queryEvent(void* event) const override { return event == nullptr || is_reached(event_at(event)); }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) wait_for(event_at(event));
  }
  void destroyEvent(void* event, c10::DeviceIndex of) const noexcept override {
    if (event == nullptr) return;
    const EventDevice scope(of);
    delete &event_at(event);
  }
  bool queryStream(const c10::Stream& stream) const override { return is_idle(number_of(stream)); }
  void synchronizeStream(const c10::Stream& stream) const override { wait_for_stream(number_of(stream)); }
  void synchronizeDevice(c10::DeviceIndex of) const override { wait_for_device(of); }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    if (auto* const block = block_at(near(data.get()))) note_use(*block, number_of(stream));
  }

  static Event& event_at(void* event) { return *static_cast<Event*>(event); }
  static int index(c10::Device of) { return of.has_index() ? of.index() : current_device(); }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace
}  // namespace hortator::sim
