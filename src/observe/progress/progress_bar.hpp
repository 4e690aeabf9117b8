#pragma once

#include <functional>
#include <hortator/training/progress.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "observe/progress/pace.hpp"
#include "observe/progress/render.hpp"
#include "observe/progress/terminal_screen.hpp"
#include "observe/trackers/late_values.hpp"

namespace hortator::observe {

/// Shows the innermost running loop with the numbers logged so far. A step costs one reading of the clock; text is made
/// and tensors are read only when a line is drawn. Values on a device are requested then and shown in the next line;
/// only a loop's last line waits for them.
class ProgressBar final : public ProgressSink {
 public:
  using Now = std::function<Clock::time_point()>;

  explicit ProgressBar(std::unique_ptr<Screen> screen, Now now = Clock::now);
  ~ProgressBar() override;
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void start(std::string_view title, std::int64_t total, std::int64_t done) override;
  void advance() override;
  void set(std::string_view name, Loggable value) override;
  void finish() noexcept override;

 private:
  struct Loop {
    std::string title;
    std::int64_t total;
    std::int64_t first;  // steps done before it began
    std::int64_t done;
    Clock::time_point begin;
    Pace pace;
    Rate rate;
    int exceptions;  // uncaught when the loop began
  };

  void draw(Clock::time_point now);
  void draw_last();
  void read_values();
  void read_last_values();
  void show(Snapshot snapshot);

  std::unique_ptr<Screen> screen_;
  Now now_;
  std::vector<Loop> loops_;
  std::vector<std::pair<std::string, Loggable>> values_;
  std::optional<LateRecord> pending_;
  std::vector<std::pair<std::string, double>> shown_values_;
};

/// Makes a bar on standard error, or a silent sink.
enum class Audience { people, nobody };
std::unique_ptr<ProgressSink> make_progress(Audience audience);

}  // namespace hortator::observe
