#include "machine/races/watch_state.hpp"

#include <optional>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::machine {
namespace {

struct StorageRange {
  std::uintptr_t begin;
  std::uintptr_t end;
};

c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

std::uintptr_t begin_of(c10::StorageImpl& storage) {
  return reinterpret_cast<std::uintptr_t>(storage._mutable_data_ptr_no_checks().get());  // NOLINT
}

std::optional<StorageRange> range_of(const at::Tensor& tensor) {
  auto* const storage = storage_of(tensor);
  if (storage == nullptr || begin_of(*storage) == 0 || storage->nbytes() == 0) return std::nullopt;
  const auto begin = begin_of(*storage);
  return StorageRange{begin, begin + storage->nbytes()};
}

StorageRange used_range(const at::Tensor& tensor, const StorageRange& whole) {
  std::int64_t elements = 1;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) elements += (tensor.size(i) - 1) * tensor.stride(i);
  const auto element = tensor.element_size();
  const auto begin = whole.begin + static_cast<std::size_t>(tensor.storage_offset()) * element;
  return {begin, begin + static_cast<std::size_t>(elements) * element};
}

// Views of memory that other objects own have no allocator, or nothing to release.
bool is_allocated(c10::StorageImpl& storage) {
  return storage.allocator() != nullptr && storage._mutable_data_ptr_no_checks().get_deleter() != nullptr;
}

MemoryOwner owner_of(const at::Tensor& tensor, const StorageRange& range, int timeline) {
  auto weak = tensor.storage().getWeakStorageImpl();
  return {.begin = range.begin,
          .end = range.end,
          .storage = storage_of(tensor),
          .timeline = tensor.is_cpu() ? host_timeline : timeline,
          .is_gone = [weak = std::move(weak), begin = range.begin] {
            const auto storage = weak.lock();
            return !storage || begin_of(*storage) != begin;
          }};
}

AccessHistory& history_of(MemoryUses& memory, const at::Tensor& tensor, const StorageRange& range, int timeline) {
  auto& storage = *storage_of(tensor);
  if (!is_allocated(storage)) return memory.of_range(range.begin, range.end);
  if (auto* const known = memory.find(range.begin, range.end, &storage)) return *known;
  return memory.add(owner_of(tensor, range, timeline));
}

}  // namespace

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
  const std::scoped_lock lock(mutex_);
  history_of(memory_, tensor, *range, timeline_of(stream));
}

void WatchState::use(const at::Tensor& tensor, const c10::Stream& stream, const MemoryUser& user, bool writes) {
  const auto range = range_of(tensor);
  if (!range || tensor.numel() == 0) return;
  const auto [begin, end] = used_range(tensor, *range);
  const std::scoped_lock lock(mutex_);
  const auto timeline = timeline_of(stream);
  detector_.use(history_of(memory_, tensor, *range, timeline), timeline, user, begin, end, writes);
  report_findings();
}

void WatchState::use_by_host(const at::Tensor& tensor, const MemoryUser& user, bool writes) {
  const auto range = range_of(tensor);
  if (!range || tensor.numel() == 0) return;
  const auto [begin, end] = used_range(tensor, *range);
  const std::scoped_lock lock(mutex_);
  if (memory_.find(range->begin, range->end) == nullptr) return;
  detector_.use(history_of(memory_, tensor, *range, host_timeline), host_timeline, user, begin, end, writes);
  report_findings();
}

void WatchState::keep(const c10::DataPtr& data, const c10::Stream& stream) {
  const std::scoped_lock lock(mutex_);
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

void WatchState::report_findings() {
  for (const auto& finding : detector_.take_findings())
    if (reported_.insert(finding).second && report_) report_(finding);
}

}  // namespace hortator::machine
