#include "machine/races/watch_state.hpp"

#include <utility>

#include "core/text/text.hpp"
#include "machine/races/storage_memory.hpp"

namespace hortator::machine {
namespace {

AccessHistory& history_of(MemoryUses& memory, const at::Tensor& tensor, const StorageRange& range, int timeline) {
  auto& storage = *storage_of(tensor);
  if (!is_allocated(storage)) return memory.of_range(range.begin, range.end);
  if (auto* const known = memory.find(range.begin, range.end, &storage)) return *known;
  return memory.add(owner_of(tensor, range, timeline));
}

}  // namespace

/// The lock of the state while it looks at memory. What is found is reported, and what is released goes, after that.
class WatchState::Session {
 public:
  explicit Session(WatchState& state) : state_(state), lock_(state.mutex_) {}
  ~Session() {
    const auto findings = state_.new_findings();
    if (findings.empty()) return;
    const auto report = state_.report_;
    lock_.unlock();
    if (!report) return;
    for (const auto& finding : findings) report(finding);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  WatchState& state_;
  StorageDiscarder discarder_;  ///< before the lock: it ends after it
  std::unique_lock<std::recursive_mutex> lock_;
};

WatchState& watch_state() {
  static auto& state = *new WatchState;
  return state;
}

void WatchState::start(c10::DeviceType type, Report report) {
  const std::scoped_lock lock(mutex_);
  type_ = type;
  report_ = std::move(report);
  detector_ = {};
  memory_ = {};
  timelines_.clear();
  events_.clear();
  reported_.clear();
  is_on_ = true;
}

void WatchState::stop() {
  const std::scoped_lock lock(mutex_);
  is_on_ = false;
  memory_ = {};
}

bool WatchState::is_watched(const at::Tensor& tensor) const {
  return tensor.defined() && tensor.device().type() == type_;
}

int WatchState::timeline_of(const c10::Stream& stream) {
  const auto next = static_cast<int>(timelines_.size()) + 1;
  const auto [found, is_new] = timelines_.try_emplace({stream.device_index(), stream.id()}, next);
  if (is_new) {
    const auto device = c10::DeviceTypeName(type_, /*lower_case=*/true);
    detector_.name_timeline(next,
                            text::concat("stream ", stream.id(), " of ", device, ':', int{stream.device_index()}));
  }
  return found->second;
}

void WatchState::submit(const c10::Stream& stream) {
  const std::scoped_lock lock(mutex_);
  detector_.submit(timeline_of(stream));
}

void WatchState::allocated(const at::Tensor& tensor, const c10::Stream& stream) {
  const auto range = range_of(tensor);
  if (!range) return;
  const Session session(*this);
  history_of(memory_, tensor, *range, timeline_of(stream));
}

void WatchState::use(const at::Tensor& tensor, const c10::Stream& stream, const MemoryUser& user, bool writes) {
  const auto range = range_of(tensor);
  if (!range || tensor.numel() == 0) return;
  const auto bytes = used_bytes(tensor, *range);
  const Session session(*this);
  const auto timeline = timeline_of(stream);
  detector_.use(history_of(memory_, tensor, *range, timeline), timeline, user, bytes, writes);
}

void WatchState::use_by_host(const at::Tensor& tensor, const MemoryUser& user, bool writes) {
  const auto range = range_of(tensor);
  if (!range || tensor.numel() == 0) return;
  const auto bytes = used_bytes(tensor, *range);
  const Session session(*this);
  if (memory_.find(range->begin, range->end) == nullptr) return;
  detector_.use(history_of(memory_, tensor, *range, host_timeline), host_timeline, user, bytes, writes);
}

void WatchState::keep(const c10::DataPtr& data, const c10::Stream& stream) {
  const Session session(*this);
  memory_.keep_for(reinterpret_cast<std::uintptr_t>(data.get()), timeline_of(stream));  // NOLINT
}

void WatchState::record(const void* event, const c10::Stream& stream) {
  const std::scoped_lock lock(mutex_);
  events_[event] = detector_.clock_of(timeline_of(stream));
}

void WatchState::forget(const void* event) {
  const std::scoped_lock lock(mutex_);
  events_.erase(event);
}

void WatchState::block(const void* event, const c10::Stream& stream) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = events_.find(event); found != events_.end())
    detector_.order_stream_after(timeline_of(stream), found->second);
}

void WatchState::order(const c10::Stream& first, const c10::Stream& second) {
  const std::scoped_lock lock(mutex_);
  detector_.order_stream_after(timeline_of(second), detector_.clock_of(timeline_of(first)));
}

Clock WatchState::clock_of(const c10::Stream& stream) {
  const std::scoped_lock lock(mutex_);
  return detector_.clock_of(timeline_of(stream));
}

Clock WatchState::clock_of(const void* event) {
  const std::scoped_lock lock(mutex_);
  const auto found = events_.find(event);
  return found == events_.end() ? Clock() : found->second;
}

Clock WatchState::clock_of(c10::DeviceIndex device) {
  const std::scoped_lock lock(mutex_);
  Clock all;
  for (const auto& [stream, timeline] : timelines_)
    if (stream.first == device) join(all, detector_.clock_of(timeline));
  return all;
}

void WatchState::host_waited(const Clock& clock) {
  const std::scoped_lock lock(mutex_);
  detector_.order_host_after(clock);
}

std::vector<std::string> WatchState::new_findings() {
  auto findings = detector_.take_findings();
  std::erase_if(findings, [&](const std::string& finding) { return !reported_.insert(finding).second; });
  return findings;
}

}  // namespace hortator::machine
