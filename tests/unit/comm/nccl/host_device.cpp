#include "host_device.hpp"

#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "core/text/text.hpp"
#include "machine/device/cuda.hpp"
#include "machine/device/device_files.hpp"
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

}  // namespace

bool is_built() { return true; }
int visible_device_count() { return 1; }
bool is_in_use() { return false; }
std::string name(int) { return test::host_device().name; }
std::string uuid(int) { return test::host_device().uuid; }
std::string pci_address(int) { return {}; }
std::size_t free_memory(int) { return 0; }

void set_current(int index) { test::host_device().last_chosen = index; }
std::shared_ptr<void> page_locked(std::size_t bytes) {
  ++test::host_device().page_locked_blocks;
  return {std::malloc(bytes), std::free};
}
int openable_devices(const std::filesystem::path&) { return 0; }

Stream::Stream(int) : stream_(c10::Stream::DEFAULT, c10::kCPU) {}
void* Stream::native() const { return &the_stream; }
void Stream::follow_current() const { test::add_to_trace("nccl's stream follows the current one"); }
Event Stream::mark() const {
  test::add_to_trace("mark");
  return {reinterpret_cast<void*>(++test::host_device().marks), 0};  // NOLINT(performance-no-int-to-ptr)
}

Event::~Event() = default;
bool Event::is_reached() const {
  const auto& device = test::host_device();
  return !device.is_stuck && reinterpret_cast<long>(native_) <= device.last_reached;
}
void Event::hold_current_stream() const { test::add_to_trace("the current stream waits for the mark"); }

void wait_until_idle(int) { test::add_to_trace("the device is idle"); }

}  // namespace hortator::machine
