#include "support/sim/streams.hpp"

#include <c10/util/Exception.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <random>
#include <utility>

#include "support/sim/memory.hpp"
#include "support/sim/operators/recording.hpp"
#include "support/sim/state.hpp"

namespace hortator::sim {
namespace {

constexpr int pool_streams = 8;  // of each device, handed out in turn, as LibTorch does

/// A task, or a wait for a position in another stream.
struct Item {
  Task task = {};
  int other = 0;
  std::uint64_t position = 0;
};

struct Queue {
  std::uint64_t submitted = 0;
  std::uint64_t done = 0;
  std::deque<Item> items = {};
  Recording* recording = nullptr;
};

struct Engine {
  std::recursive_mutex running;  // of the thread that runs tasks; taken before the lock of the state
  std::vector<Queue> queues = std::vector<Queue>(1 + devices * (1 + pool_streams));
  std::vector<int> next = std::vector<int>(devices, 0);
  std::atomic<Policy> policy = Policy::eager;
  std::mt19937_64 dice;
  std::string failure;
};

Engine& engine() {
  static auto& all = *new Engine;
  return all;
}

Queue& queue_of(int stream) { return engine().queues.at(static_cast<std::size_t>(stream)); }

void run_task(const Task& task) {
  try {
    task.run(task.dice);
  } catch (const std::exception& error) {
    const std::scoped_lock lock(state_lock());
    const auto text = std::string(task.name) + " failed: " + std::string(error.what()).substr(0, 400);
    if (engine().failure.empty()) engine().failure = text;
    races().add_finding(text);
  }
}

void run_to(int stream, std::uint64_t position);

/// Runs the first item of a stream. False: there is none, or it waits for another stream and `waits` is false.
bool step(int stream, bool waits) {
  std::unique_lock lock(state_lock());
  auto& queue = queue_of(stream);
  if (queue.items.empty()) return false;
  auto& first = queue.items.front();
  if (first.other != 0 && queue_of(first.other).done < first.position) {
    if (!waits) return false;
    const auto [other, position] = std::pair(first.other, first.position);
    lock.unlock();
    run_to(other, position);
    lock.lock();
  }
  const auto item = std::move(queue.items.front());
  queue.items.pop_front();
  lock.unlock();
  if (item.other == 0) run_task(item.task);
  lock.lock();
  ++queue.done;
  return true;
}

void run_to(int stream, std::uint64_t position) {
  const std::scoped_lock running(engine().running);
  for (;;) {
    {
      const std::scoped_lock lock(state_lock());
      if (queue_of(stream).done >= position) return;
    }
    if (!step(stream, true)) return;
  }
}

int random_busy_stream() {
  const std::scoped_lock lock(state_lock());
  std::vector<int> busy;
  for (int stream = 1; stream < static_cast<int>(engine().queues.size()); ++stream)
    if (!queue_of(stream).items.empty()) busy.push_back(stream);
  return busy.empty() ? 0 : busy[engine().dice() % busy.size()];
}

void run_some() {
  const std::scoped_lock running(engine().running);
  for (auto steps = engine().dice() % 4; steps > 0; --steps) {
    if (const auto stream = random_busy_stream(); stream != 0) step(stream, false);
  }
}

void throw_failure() {
  std::unique_lock lock(state_lock());
  const auto failure = std::exchange(engine().failure, {});
  lock.unlock();
  TORCH_CHECK(failure.empty(), "sim: ", failure);
}

void push(int stream, Task task) {
  auto& queue = queue_of(stream);
  ++queue.submitted;
  queue.items.push_back({std::move(task)});
}

void check_uses(int stream, const Task& task) {
  races().submit(stream);
  for (const auto& use : task.uses) races().use(use.block->history, stream, {.name = task.name}, use.bytes, use.writes);
}

}  // namespace

int default_stream(int device) { return 1 + device; }

int next_pool_stream(int device) {
  const std::scoped_lock lock(state_lock());
  auto& next = engine().next.at(static_cast<std::size_t>(device));
  next = (next + 1) % pool_streams;
  return 1 + devices + device * pool_streams + next;
}

int device_of(int stream) { return stream <= devices ? stream - 1 : (stream - 1 - devices) / pool_streams; }

Recording* recording_of(int stream) { return queue_of(stream).recording; }
void set_recording(int stream, Recording* recording) { queue_of(stream).recording = recording; }

void submit(int stream, Task task) {
  {
    const std::scoped_lock lock(state_lock());
    if (auto* const recording = recording_of(stream)) return add_task(*recording, stream, std::move(task));
    ++mutable_counts().operators;
    check_uses(stream, task);
    push(stream, std::move(task));
  }
  if (engine().policy == Policy::eager) run_to(stream, ~std::uint64_t{0});
  if (engine().policy == Policy::random) run_some();
}

void submit_poison(Block& block) {
  Task task{.name = "free",
            .uses = {{&block, {0, block.bytes}, true}},
            .run = [memory = block.memory, bytes = block.bytes](const Dice&) { std::memset(memory, 0xff, bytes); }};
  auto* const recording = recording_of(block.stream);
  if (recording != nullptr && block.pool == recording->pool) return add_task(*recording, block.stream, std::move(task));
  check_uses(block.stream, task);
  push(block.stream, std::move(task));
}

void record(Event& event, int stream) {
  const std::scoped_lock lock(state_lock());
  const auto& queue = queue_of(stream);
  event = {stream, queue.submitted, races().clock_of(stream), 0, queue.recording};
  if (queue.recording != nullptr) event.position = queue.recording->tasks.size();
}

void hold(int stream, const Event& event) {
  const std::scoped_lock lock(state_lock());
  if (event.stream == 0 || event.stream == stream) return;
  if (event.recording != nullptr || recording_of(stream) != nullptr) return join_recording(stream, event);
  races().order_stream_after(stream, event.clock);
  auto& queue = queue_of(stream);
  ++queue.submitted;
  queue.items.push_back({{}, event.stream, event.position});
}

bool is_reached(Event& event) {
  if (event.stream == 0) return true;
  check_may_wait("the query of an event", event.recording);
  constexpr int patience = 3;  // the device is late, but not stuck
  if (engine().policy == Policy::random) run_some();
  if (++event.queries > patience) run_to(event.stream, event.position);
  const std::scoped_lock lock(state_lock());
  if (queue_of(event.stream).done < event.position) return false;
  races().order_host_after(event.clock);
  return true;
}

bool has_passed(const Event& event) {
  return event.recording == nullptr && queue_of(event.stream).done >= event.position;
}

bool is_idle_now(int stream) { return queue_of(stream).items.empty(); }

bool is_idle(int stream) {
  Event event;
  record(event, stream);
  return is_reached(event);
}

void wait_for(const Event& event) {
  if (event.stream == 0) return;
  check_may_wait("a wait of the host", event.recording);
  run_to(event.stream, event.position);
  {
    const std::scoped_lock lock(state_lock());
    ++mutable_counts().host_waits;
    races().order_host_after(event.clock);
  }
  throw_failure();
}

void wait_for_stream(int stream) {
  Event event;
  record(event, stream);
  wait_for(event);
}

void wait_for_device(int device) {
  check_may_wait("a wait for the device", nullptr);
  for (int stream = 1; stream < static_cast<int>(engine().queues.size()); ++stream)
    if (device_of(stream) == device) wait_for_stream(stream);
}

void run_device(int device) {
  for (int stream = 1; stream < static_cast<int>(engine().queues.size()); ++stream)
    if (device_of(stream) == device) run_to(stream, ~std::uint64_t{0});
}

void run_all() {
  for (int device = 0; device < devices; ++device) run_device(device);
}

void set_policy(Policy policy, std::uint64_t seed) {
  run_all();
  const std::scoped_lock running(engine().running);
  engine().policy = policy;
  engine().dice.seed(seed);
}

}  // namespace hortator::sim
