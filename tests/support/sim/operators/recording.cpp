#include "support/sim/operators/recording.hpp"

#include <c10/util/Exception.h>

#include <utility>

#include "core/text/text.hpp"
#include "support/sim/generator.hpp"
#include "support/sim/memory.hpp"
#include "support/sim/state.hpp"

namespace hortator::sim {
namespace {

int last_pool = 0;
std::vector<Recording*> under_way;
thread_local Recording* of_this_thread = nullptr;

std::vector<std::uint64_t> releases_of(const Task& task) {
  std::vector<std::uint64_t> releases;
  for (const auto& use : task.uses) releases.push_back(use.block->releases);
  return releases;
}

// Memory of the recording stays its own after its release.
void check_memory(const Recording::Recorded& recorded, int pool) {
  for (std::size_t i = 0; i < recorded.releases.size(); ++i) {
    const auto& block = *recorded.task.uses[i].block;
    if (block.pool != pool && block.releases != recorded.releases[i])
      races().add_finding(
          text::concat("Replayed '", recorded.task.name, "' uses memory that was released after it was recorded"));
  }
}

[[noreturn]] void refuse(Recording& recording, const char* what) {
  recording.fault = what;
  TORCH_CHECK(false, "sim: ", what, " is not permitted while a stream is recorded");
}

}  // namespace

Recording::~Recording() {
  run_device(device_of(stream));
  dissolve_pool(pool);
}

std::unique_ptr<Recording> begin_recording(int stream) {
  auto recording = std::make_unique<Recording>();
  const std::scoped_lock lock(state_lock());
  TORCH_CHECK(recording_of(stream) == nullptr, "sim: the stream is being recorded already");
  recording->stream = stream;
  recording->pool = ++last_pool;
  set_recording(stream, recording.get());
  under_way.push_back(recording.get());
  of_this_thread = recording.get();
  return recording;
}

void end_recording(Recording& recording) {
  const std::scoped_lock lock(state_lock());
  set_recording(recording.stream, nullptr);
  for (const auto& [stream, tasks] : recording.joined) set_recording(stream, nullptr);
  std::erase(under_way, &recording);
  of_this_thread = nullptr;
  TORCH_CHECK(recording.fault == nullptr, "sim: the recording is not valid: ", recording.fault);
  for (const auto& [stream, tasks] : recording.joined)
    TORCH_CHECK(tasks == 0, "sim: a stream that joined the recording has not been awaited");
}

void replay(const Recording& recording, int stream) {
  const auto base = reserve_numbers(device_of(stream), recording.drawn);
  for (const auto& recorded : recording.tasks) {
    {
      const std::scoped_lock lock(state_lock());
      check_memory(recorded, recording.pool);
    }
    auto task = recorded.task;
    task.dice = {base.seed, base.offset + task.dice.offset};
    submit(stream, std::move(task));
  }
}

bool is_recording(int device) {
  const std::scoped_lock lock(state_lock());
  return std::ranges::any_of(under_way, [&](const auto* one) { return device_of(one->stream) == device; });
}

void check_may_wait(const char* what, const Recording* of_event) {
  const std::scoped_lock lock(state_lock());
  if (of_this_thread != nullptr) refuse(*of_this_thread, what);
  const auto found = std::ranges::find(under_way, of_event);
  if (found != under_way.end()) refuse(**found, what);
  TORCH_CHECK(of_event == nullptr, "sim: the event belongs to a recording that has ended");
}

void add_task(Recording& recording, int stream, Task task) {
  auto releases = releases_of(task);
  recording.tasks.push_back({std::move(task), std::move(releases)});
  if (stream != recording.stream) recording.joined[stream] = recording.tasks.size();
}

// The streams of a recording are replayed in the order in which their work was submitted.
void join_recording(int stream, const Event& event) {
  auto* const own = recording_of(stream);
  auto* const other = recording_of(event.stream);
  if (own != nullptr && event.recording != own) refuse(*own, "a wait for work outside of the recording");
  if (own != nullptr) {
    if (event.stream != own->stream && event.position >= own->joined[event.stream]) own->joined[event.stream] = 0;
    return;
  }
  TORCH_CHECK(other != nullptr && other == event.recording, "sim: the event belongs to a recording that has ended");
  other->joined[stream] = 0;
  set_recording(stream, other);
}

}  // namespace hortator::sim
