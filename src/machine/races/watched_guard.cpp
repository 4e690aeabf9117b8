#include "machine/races/watched_guard.hpp"

#include "machine/races/watch_state.hpp"

namespace hortator::machine {
namespace {

using Interface = c10::impl::DeviceGuardImplInterface;

// Templates, because LibTorch has these two only in its newer versions.
template <typename Guard>
void* native_handle(const Guard& guard, const c10::Stream& stream) {
  if constexpr (requires { guard.getStreamNativeHandle(stream); })
    return guard.getStreamNativeHandle(stream);
  else
    return nullptr;
}
template <typename Guard>
bool is_capturing(const Guard& guard, const c10::Stream& stream) {
  if constexpr (requires { guard.isStreamCapturing(stream); })
    return guard.isStreamCapturing(stream);
  else
    return false;
}

// What is known is taken before a wait begins: others may submit work while it lasts.
class WatchedGuard final : public Interface {
 public:
  explicit WatchedGuard(const Interface& guard) : guard_(guard) {}

  c10::DeviceType type() const override { return guard_.type(); }
  c10::Device exchangeDevice(c10::Device device) const override { return guard_.exchangeDevice(device); }
  c10::Device getDevice() const override { return guard_.getDevice(); }
  void setDevice(c10::Device device) const override { guard_.setDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { guard_.uncheckedSetDevice(device); }
  c10::DeviceIndex deviceCount() const noexcept override { return guard_.deviceCount(); }
#if __has_include(<c10/core/DeviceCapability.h>)
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    return guard_.getDeviceCapability(device);
  }
#endif

  c10::Stream getStream(c10::Device device) const override { return guard_.getStream(device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return guard_.getDefaultStream(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool is_high_priority) const override {
    return guard_.getStreamFromGlobalPool(device, is_high_priority);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return guard_.getNewStream(device, priority);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return guard_.exchangeStream(stream); }
  // NOLINTNEXTLINE(modernize-use-override): not in all versions
  void* getStreamNativeHandle(const c10::Stream stream) const { return native_handle(guard_, stream); }
  // NOLINTNEXTLINE(modernize-use-override)
  bool isStreamCapturing(const c10::Stream& stream) const { return is_capturing(guard_, stream); }
  bool queryStream(const c10::Stream& stream) const override {
    const auto clock = clock_of(stream);
    return note_wait(guard_.queryStream(stream), clock);
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    const auto clock = clock_of(stream);
    guard_.synchronizeStream(stream);
    note_wait(true, clock);
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    const auto clock = clock_of(device);
    guard_.synchronizeDevice(device);
    note_wait(true, clock);
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex device,
              const c10::EventFlag flag) const override {
    guard_.record(event, stream, device, flag);
    if (is_on()) watch_state().record(*event, stream);
  }
  void block(void* event, const c10::Stream& stream) const override {
    guard_.block(event, stream);
    if (is_on()) watch_state().block(event, stream);
  }
  bool queryEvent(void* event) const override {
    const auto clock = clock_of(static_cast<const void*>(event));
    return note_wait(guard_.queryEvent(event), clock);
  }
  void synchronizeEvent(void* event) const override {
    const auto clock = clock_of(static_cast<const void*>(event));
    guard_.synchronizeEvent(event);
    note_wait(true, clock);
  }
  void destroyEvent(void* event, const c10::DeviceIndex device) const noexcept override {
    if (is_on()) watch_state().forget(event);
    guard_.destroyEvent(event, device);
  }
  double elapsedTime(void* first, void* second, const c10::DeviceIndex device) const override {
    return guard_.elapsedTime(first, second, device);
  }

  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    guard_.recordDataPtrOnStream(data, stream);
    if (is_on()) watch_state().keep(data, stream);
  }

 private:
  static bool is_on() { return watch_state().is_on(); }
  template <typename Position>
  static Clock clock_of(const Position& position) {
    return is_on() ? watch_state().clock_of(position) : Clock();
  }
  static bool note_wait(bool is_over, const Clock& clock) {
    if (is_over && is_on()) watch_state().host_waited(clock);
    return is_over;
  }

  const Interface& guard_;
};

}  // namespace

const Interface* watched_guard(const Interface& guard) { return new WatchedGuard(guard); }

}  // namespace hortator::machine
