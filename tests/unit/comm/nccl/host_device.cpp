#include "host_device.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

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

thread_local int device_of_thread = 0;

/// Work and marks, in the order in which they were given.
class HostStream {
 public:
  void submit(std::function<bool()> work) {
    const std::scoped_lock lock(mutex_);
    entries_.push_back({.work = std::move(work)});
    ++works_;
  }
  long mark() {
    const std::scoped_lock lock(mutex_);
    entries_.push_back({.mark = ++host_device().marks});
    return entries_.back().mark;
  }
  bool has_passed(long mark) const { return passed_ >= mark; }
  bool is_idle() const { return works_ == 0; }
  /// Returns when `mark` was passed, or the stream will not come to it.
  void wait_for(long mark) const {
    while (!has_passed(mark) && stands_before() >= mark) std::this_thread::sleep_for(pause);
  }
  void wait_until_idle() const {
    while (!is_idle() && stands_before() == std::numeric_limits<long>::max()) std::this_thread::sleep_for(pause);
  }

 private:
  static constexpr std::chrono::microseconds pause{20};
  struct Entry {
    std::function<bool()> work = {};
    long mark = 0;
  };

  static long stands_before() { return host_device().is_stuck ? 0 : host_device().last_reached.load(); }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (!step()) std::this_thread::sleep_for(pause);
    }
  }
  // Whether the stream has come further. Only this thread takes entries away.
  bool step() {
    std::unique_lock lock(mutex_);
    if (entries_.empty() || host_device().is_stuck) return false;
    auto& first = entries_.front();
    if (first.work) {
      lock.unlock();
      if (!first.work()) return false;
      lock.lock();
      --works_;
    } else {
      if (first.mark > host_device().last_reached) return false;
      passed_ = first.mark;
    }
    entries_.pop_front();
    return true;
  }

  std::mutex mutex_;
  std::deque<Entry> entries_;  // references to entries stay valid while others are added
  std::atomic<long> passed_ = 0;
  std::atomic<long> works_ = 0;
  std::jthread executor_{[this](const std::stop_token& stop) { run(stop); }};
};

HostStream& host_stream() {
  static HostStream stream;
  return stream;
}

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

int chosen_device() { return device_of_thread; }
void submit(std::function<bool()> work) { host_stream().submit(std::move(work)); }
bool is_idle() { return host_stream().is_idle(); }
void await_idle() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!is_idle() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace hortator::test

namespace hortator::machine {
namespace {

int the_stream = 0;

// The number of each mark, which is that of the last event at its address.
struct {
  std::mutex mutex;
  std::map<const c10::Event*, long> marks;
} numbered;

long number_of(const c10::Event& event) {
  const std::scoped_lock lock(numbered.mutex);
  return numbered.marks.at(&event);
}

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
std::size_t free_memory(c10::Device) { return test::host_device().free_bytes; }

void release_cached_memory(c10::Device) {
  ++test::host_device().cache_releases;
  test::host_device().free_bytes += test::host_device().cached_bytes.exchange(0);
}
void report_out_of_memory(std::uint64_t) { ++test::host_device().memory_reports; }

void set_current(c10::Device device) {
  test::device_of_thread = device.index();
  test::host_device().last_chosen = device.index();
}
std::shared_ptr<void> page_locked(std::size_t bytes) {
  ++test::host_device().page_locked_blocks;
  return {std::malloc(bytes), std::free};
}
DeviceFiles device_files(const std::filesystem::path&) { return {.openable = test::host_device().openable}; }

Stream::Stream(c10::Device) : stream_(c10::Stream::DEFAULT, c10::kCPU) {}
void* Stream::native() const { return &the_stream; }
void Stream::follow_current() const { test::add_to_trace("nccl's stream follows the current one"); }
Event Stream::mark() const {
  test::add_to_trace("mark");
  auto event = std::make_shared<const c10::Event>(c10::kCPU);
  const std::scoped_lock lock(numbered.mutex);
  numbered.marks[event.get()] = test::host_stream().mark();
  return Event(std::move(event));
}

bool Event::is_reached() const { return test::host_stream().has_passed(number_of(*event_)); }

// The calling thread is the current stream, so it waits, unless the device stands still.
void Event::hold_current_stream() const {
  test::add_to_trace("the current stream waits for the mark");
  test::host_stream().wait_for(number_of(*event_));
}

void wait_until_idle(c10::Device) {
  test::add_to_trace("the device is idle");
  test::host_stream().wait_until_idle();
}

}  // namespace hortator::machine
