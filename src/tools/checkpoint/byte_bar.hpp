#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "observe/progress/progress_bar.hpp"

namespace hortator::tools::checkpoints {

/// A progress bar for reading or writing `total` bytes. Thread-safe.
class ByteBar {
 public:
  ByteBar(const std::string& title, std::int64_t total, observe::Audience audience = observe::Audience::people)
      : sink_(observe::make_progress(audience)), total_(total) {
    sink_->start(title, (total + step_bytes - 1) / step_bytes, 0);
  }
  ~ByteBar() { sink_->finish(); }
  ByteBar(const ByteBar&) = delete;
  ByteBar& operator=(const ByteBar&) = delete;

  void advance(std::int64_t bytes) {
    const std::lock_guard lock(advancing_);
    done_ += bytes;
    for (; shown_ < total_ && std::min(shown_ + step_bytes, total_) <= done_; shown_ += step_bytes) sink_->advance();
  }

 private:
  static constexpr std::int64_t step_bytes = std::int64_t{1} << 20;

  std::unique_ptr<ProgressSink> sink_;
  std::mutex advancing_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  std::int64_t shown_ = 0;
};

}  // namespace hortator::tools::checkpoints
