#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "machine/races/memory_uses.hpp"
#include "machine/races/race_detector.hpp"

namespace hortator::machine {

/// What a StreamWatch knows. Callable from any thread. Nothing is noted while it is off.
class WatchState {
 public:
  using Report = std::function<void(const std::string& finding)>;

  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  void start(c10::DeviceType type, Report report);
  void stop();

  c10::DeviceType type() const { return type_; }
  bool is_watched(const at::Tensor& tensor) const;

  /// The next work of a stream.
  void submit(const c10::Stream& stream);
  /// Work of the stream, which was submitted last, uses a tensor.
  void use(const at::Tensor& tensor, const c10::Stream& stream, const MemoryUser& user, bool writes);
  /// The stream has allocated the memory of the tensor, if it is new.
  void allocated(const at::Tensor& tensor, const c10::Stream& stream);
  /// The host uses a tensor. Counts if a stream has used its memory.
  void use_by_host(const at::Tensor& tensor, const MemoryUser& user, bool writes);
  /// The allocator keeps memory until the stream is done with it.
  void keep(const c10::DataPtr& data, const c10::Stream& stream);

  void record(const void* event, const c10::Stream& stream);
  void forget(const void* event);
  void block(const void* event, const c10::Stream& stream);
  void order(const c10::Stream& first, const c10::Stream& second);

  Clock clock_of(const c10::Stream& stream);
  Clock clock_of(const void* event);
  Clock clock_of(c10::DeviceIndex device);
  void host_waited(const Clock& clock);

 private:
  class Session;

  int timeline_of(const c10::Stream& stream);
  std::vector<std::string> new_findings();

  std::recursive_mutex mutex_;
  std::atomic<bool> is_on_ = false;
  c10::DeviceType type_ = c10::kCPU;
  Report report_;
  RaceDetector detector_;
  MemoryUses memory_;
  std::map<std::pair<c10::DeviceIndex, c10::StreamId>, int> timelines_;
  std::unordered_map<const void*, Clock> events_;
  std::set<std::string> reported_;
};

/// The process's. It is never destroyed: tensors of static objects may outlive everything.
WatchState& watch_state();

}  // namespace hortator::machine
