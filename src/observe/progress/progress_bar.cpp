#include "observe/progress/progress_bar.hpp"

#include <algorithm>
#include <exception>

#include "observe/progress/noted_progress.hpp"
#include "observe/progress/terminal_screen.hpp"

namespace hortator::observe {
namespace {

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

ProgressBar::ProgressBar(std::unique_ptr<Screen> screen, Now now) : screen_(std::move(screen)), now_(std::move(now)) {}

ProgressBar::~ProgressBar() {
  while (!loops_.empty()) finish();
}

void ProgressBar::start(std::string_view title, std::int64_t total, std::int64_t done) {
  if (!loops_.empty()) screen_->keep();
  const auto now = now_();
  loops_.push_back({.title = std::string(title),
                    .total = total,
                    .first = done,
                    .done = done,
                    .begin = now,
                    .pace = Pace(screen_->medium(), now),
                    .rate = {},
                    .exceptions = std::uncaught_exceptions()});
  if (loops_.back().pace.is_due(now)) draw(now);
}

void ProgressBar::advance() {
  if (loops_.empty()) return;
  auto& loop = loops_.back();
  ++loop.done;
  const auto now = now_();
  if (loop.pace.is_due(now)) draw(now);
}

void ProgressBar::set(std::string_view name, Loggable value) {
  const auto same = std::ranges::find_if(values_, [&](const auto& entry) { return entry.first == name; });
  if (same == values_.end()) {
    values_.emplace_back(name, std::move(value));
  } else {
    same->second = std::move(value);
  }
}

void ProgressBar::finish() noexcept {
  if (loops_.empty()) return;
  // A loop ends even when its last line fails (a tensor that cannot be read any more, a terminal that was closed).
  try {
    draw_last();
  } catch (...) {
  }
  loops_.pop_back();
}

void ProgressBar::draw(Clock::time_point now) {
  read_values();
  auto& loop = loops_.back();
  const double elapsed = seconds(now - loop.begin);
  loop.rate.update(loop.done - loop.first, elapsed);
  show({.title = loop.title,
        .done = loop.done,
        .total = loop.total,
        .elapsed = elapsed,
        .per_second = loop.rate.per_second()});
  loop.pace.shown(now);
}

void ProgressBar::draw_last() {
  const auto& loop = loops_.back();
  // During stack unwinding a device may wait for ranks that have ended: reading a tensor would hang.
  if (std::uncaught_exceptions() <= loop.exceptions) read_last_values();
  const double elapsed = seconds(now_() - loop.begin);
  const double per_second = elapsed > 0 ? static_cast<double>(loop.done - loop.first) / elapsed : 0;
  show({.title = loop.title,
        .done = loop.done,
        .total = loop.total,
        .elapsed = elapsed,
        .per_second = per_second,
        .is_over = true});
  screen_->keep();
}

void ProgressBar::show(Snapshot snapshot) {
  snapshot.values = shown_values_;
  const bool on_terminal = screen_->medium() == Pace::Medium::terminal;
  screen_->show(on_terminal ? bar_line(snapshot, screen_->columns()) : log_line(snapshot));
}

void ProgressBar::read_values() {
  if (pending_ && !pending_->is_ready()) return;
  if (pending_) shown_values_ = pending_->read().values;
  pending_.emplace(/*step=*/0, /*time=*/0, values_);
  if (!pending_->is_on_host()) return;
  shown_values_ = pending_->read().values;
  pending_.reset();
}

void ProgressBar::read_last_values() {
  pending_.reset();
  shown_values_ = LateRecord(/*step=*/0, /*time=*/0, values_).read().values;
}

std::unique_ptr<ProgressSink> make_progress(Audience audience) {
  if (audience == Audience::nobody) return std::make_unique<SilentProgress>();
  return std::make_unique<ProgressBar>(make_screen());
}

}  // namespace hortator::observe
