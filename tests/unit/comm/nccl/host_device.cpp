#include "host_device.hpp"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "core/text/text.hpp"
#include "machine/device/device.hpp"
#include "machine/device/memory.hpp"
#include "machine/device/stream.hpp"

namespace hortator::test {

namespace {

struct {
  std::mutex mutex;
  std::vector<std::string> lines;
} written;

}  // namespace

std::vector<std::string> trace() {
  const std::scoped_lock lock(written.mutex);
  return written.lines;
}

void add_to_trace(const std::string& line) {
  const std::scoped_lock lock(written.mutex);
  written.lines.push_back(line);
}

void clear_trace() {
  const std::scoped_lock lock(written.mutex);
  written.lines.clear();
}

HostDevice& host_device() {
  static HostDevice device{.uuid = text::concat("HOST-", getpid())};
  return device;
}

}  // namespace hortator::test

namespace hortator::machine {
namespace {

int the_stream = 0;

// The number of each mark, which is the one of the last event at that address.
struct {
  std::mutex mutex;
  std::map<const c10::Event*, long> marks;
} numbered;

}  // namespace

// The far device's kind (tests/support/far_device.hpp), which has no row in the table.
const DeviceKind* accelerator_kind() {
  static constexpr DeviceKind kind = {.type = c10::kPrivateUse1,
                                      .name = "far",
                                      .title = "Far",
                                      .build_option = "HORTATOR_WITH_FAR",
                                      .visibility = "FAR_VISIBLE_DEVICES",
                                      .tool = "far-smi",
                                      .file_prefix = "far"};
  return &kind;
}

DeviceIdentity identify(c10::Device) { return {test::host_device().name, test::host_device().uuid, {}}; }
std::vector<c10::Device> visible_devices() { return {{c10::kPrivateUse1, 0}}; }
std::vector<std::string> visible_uuids() { return {test::host_device().uuid}; }
bool is_in_use() { return false; }
std::size_t free_memory(c10::Device) { return 0; }

void set_current(c10::Device device) { test::host_device().last_chosen = device.index(); }
std::shared_ptr<void> page_locked(std::size_t bytes) {
  ++test::host_device().page_locked_blocks;
  return {std::malloc(bytes), std::free};
}
DeviceFiles device_files(const std::filesystem::path&) { return {}; }

Stream::Stream(c10::Device) : stream_(c10::Stream::DEFAULT, c10::kCPU) {}
void* Stream::native() const { return &the_stream; }
void Stream::follow_current() const { test::add_to_trace("nccl's stream follows the current one"); }
Event Stream::mark() const {
  test::add_to_trace("mark");
  auto event = std::make_shared<const c10::Event>(c10::kCPU);
  const std::scoped_lock lock(numbered.mutex);
  numbered.marks[event.get()] = ++test::host_device().marks;
  return Event(std::move(event));
}

bool Event::is_reached() const {
  const auto& device = test::host_device();
  const std::scoped_lock lock(numbered.mutex);
  return !device.is_stuck && numbered.marks.at(event_.get()) <= device.last_reached;
}
void Event::hold_current_stream() const { test::add_to_trace("the current stream waits for the mark"); }

void wait_until_idle(c10::Device) { test::add_to_trace("the device is idle"); }

}  // namespace hortator::machine
