#pragma once

#include <functional>
#include <hortator/training/progress.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "observe/progress/pace.hpp"
#include "observe/status/status_record.hpp"

namespace hortator::observe {

/// Shows nothing: for all ranks but the first of each machine.
class SilentProgress final : public ProgressSink {
 public:
  void start(std::string_view title, std::int64_t total, std::int64_t done) override;
  void advance() override;
  void set(std::string_view name, Loggable value) override;
  void finish() noexcept override;
};

/// Forwards everything to another sink and records the position of every loop.
class NotedProgress final : public ProgressSink {
 public:
  /// `on_step` is called after each step.
  NotedProgress(std::unique_ptr<ProgressSink> inner, std::function<void()> on_step)
      : inner_(std::move(inner)), on_step_(std::move(on_step)) {}

  void start(std::string_view title, std::int64_t total, std::int64_t done) override;
  void advance() override;
  void set(std::string_view name, Loggable value) override { inner_->set(name, std::move(value)); }
  void finish() noexcept override;

  /// The running loops, the outermost first. Rates cover the time since the last call.
  std::vector<observe::LoopStatus> loops();
  /// The running loops; after them the outermost loop that ended last, as it ended.
  std::vector<observe::LoopStatus> last_loops() const;

 private:
  struct Loop {
    std::string title;
    std::int64_t total;
    std::int64_t first;
    std::int64_t done;
    Clock::time_point begin;
    Rate rate;
  };

  static observe::LoopStatus status_of(const Loop& loop);

  std::unique_ptr<ProgressSink> inner_;
  std::function<void()> on_step_;
  std::vector<Loop> loops_;
  std::optional<Loop> last_;
};

}  // namespace hortator::observe
