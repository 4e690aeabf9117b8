#pragma once

#include <hortator/training/progress.hpp>

namespace hortator::observe {

/// Shows nothing: for all ranks but the first of each machine.
class SilentProgress final : public ProgressSink {
 public:
  void start(std::string_view title, std::int64_t total, std::int64_t done) override;
  void advance() override;
  void set(std::string_view name, Loggable value) override;
  void finish() noexcept override;
};

}  // namespace hortator::observe
