#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace hortator::test {

/// During its lifetime, counts the tensors on the CPU that this thread allocates.
class LiveBytes {
 public:
  std::int64_t held() const { return counter_->bytes; }  ///< bytes allocated and not freed
  std::int64_t peak() const { return counter_->peak; }

 private:
  struct Counter final : c10::MemoryReportingInfoBase {
    std::int64_t bytes = 0, peak = 0;
    void reportMemoryUsage(void* /*memory*/, std::int64_t size, std::size_t /*allocated*/, std::size_t /*reserved*/,
                           c10::Device /*device*/) override {
      bytes += size;
      peak = std::max(peak, bytes);
    }
    bool memoryProfilingEnabled() const override { return true; }
  };

  std::shared_ptr<Counter> counter_ = std::make_shared<Counter>();
  c10::DebugInfoGuard guard_{c10::DebugInfoKind::PROFILER_STATE, counter_};
};

}  // namespace hortator::test
