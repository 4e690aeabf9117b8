#pragma once

#include <exception>
#include <functional>
#include <string_view>
#include <utility>

#include "comm/collective_range.hpp"
#include "core/activity/activity.hpp"

namespace hortator::comm {

/// A collective under way. Its tensors belong to the back end until wait() returns. The destructor waits, except during
/// stack unwinding: peers that will never take part must not keep the error from being printed.
class Work {
 public:
  Work() = default;  ///< already done
  explicit Work(std::function<void()> wait) : wait_(std::move(wait)) {}
  ~Work() {
    if (std::uncaught_exceptions() > 0) return;
    // A destructor must not throw; callers that need the error call wait().
    try {
      wait();
    } catch (...) {
    }
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  Work(Work&& other) noexcept
      : wait_(std::exchange(other.wait_, nullptr)), operation_(other.operation_), backend_(other.backend_) {}
  Work& operator=(Work&& other) noexcept {
    std::swap(wait_, other.wait_);
    std::swap(operation_, other.operation_);
    std::swap(backend_, other.backend_);
    return *this;
  }

  /// Blocks until the result is there; on CUDA makes the current stream wait instead. Throws the collective's error.
  void wait() {
    auto pending = std::exchange(wait_, nullptr);
    if (!pending) return;
    const activity::Collective here(operation_);
    const CollectiveRange range(operation_, backend_, CollectiveRange::CollectivePhase::wait);
    pending();
  }

  /// Reports the time in wait() to the watchdog and profiles as part of `operation`. `backend` is a communicator's
  /// name.
  void name_wait(const activity::Operation& operation, std::string_view backend) {
    operation_ = operation;
    backend_ = backend;
  }

 private:
  std::function<void()> wait_;
  activity::Operation operation_;
  std::string_view backend_;
};

}  // namespace hortator::comm
