#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/export.hpp>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace hortator {

/// A number to show: any arithmetic type, or a tensor with one element. A tensor is detached at once, but read only
/// when it is drawn, so that logging each step does not make the CPU wait for the GPU.
class HORTATOR_API Loggable {
 public:
  template <typename Number>
  requires std::is_arithmetic_v<Number> Loggable(Number number) : value_(static_cast<double>(number)) {}
  Loggable(const at::Tensor& tensor);

  double value() const;
  const at::Tensor* tensor() const { return std::get_if<at::Tensor>(&value_); }  ///< null for a number

 private:
  std::variant<double, at::Tensor> value_;
};

/// Receives the progress of a loop. accelerator.progress() uses one that draws on the first rank of each machine and
/// does nothing elsewhere.
class HORTATOR_API ProgressSink {
 public:
  ProgressSink() = default;
  virtual ~ProgressSink();
  ProgressSink(const ProgressSink&) = delete;
  ProgressSink& operator=(const ProgressSink&) = delete;

  /// Starts a loop of `total` steps (below 0: unknown). An earlier run has done the first `done` of them. A loop
  /// within another one is shown in its place until it ends.
  virtual void start(std::string_view title, std::int64_t total, std::int64_t done) = 0;
  virtual void advance() = 0;  ///< counts one step
  /// Shows a number from now on, also in later bars. Replaces the number of the same name.
  virtual void set(std::string_view name, Loggable value) = 0;
  /// Ends the innermost loop, whether it is complete or not.
  virtual void finish() noexcept = 0;
};

/// Wraps `range`, and reports the progress of a loop to `sink`: `for (auto& item : ProgressRange(range, sink,
/// "title"))`. Keeps a temporary, and borrows any other range. The loop may end by break, return or exception.
template <typename Range>
class ProgressRange {
 public:
  class Iterator;
  class End;

  ProgressRange(Range&& range, ProgressSink& sink, std::string_view title)
      : range_(std::forward<Range>(range)), sink_(sink), title_(title) {}
  ~ProgressRange() { finish(); }
  ProgressRange(const ProgressRange&) = delete;
  ProgressRange& operator=(const ProgressRange&) = delete;

  Iterator begin() {
    finish();
    sink_.start(title_, total(), first_step());
    running_ = true;
    return Iterator(std::begin(range_), sink_);
  }
  End end() { return End(std::end(range_)); }
  auto size() const { return std::size(range_); }

 private:
  // The size of a stream may be unknown.
  std::int64_t total() const {
    if constexpr (requires { range_.has_size(); }) {
      if (!range_.has_size()) return -1;
    }
    return static_cast<std::int64_t>(std::size(range_));
  }
  // A loader with a loaded state resumes in the middle of an epoch.
  std::int64_t first_step() const {
    if constexpr (requires { range_.first_step(); }) {
      return range_.first_step();
    } else {
      return 0;
    }
  }
  void finish() noexcept {
    if (std::exchange(running_, false)) sink_.finish();
  }

  Range range_;
  ProgressSink& sink_;
  std::string title_;
  bool running_ = false;
};

template <typename Range>
ProgressRange(Range&&, ProgressSink&, std::string_view) -> ProgressRange<Range>;

template <typename Range>
class ProgressRange<Range>::End {
 public:
  using Inner = decltype(std::end(std::declval<std::remove_reference_t<Range>&>()));
  explicit End(Inner inner) : inner_(std::move(inner)) {}
  const Inner& inner() const { return inner_; }

 private:
  Inner inner_;
};

template <typename Range>
class ProgressRange<Range>::Iterator {
 public:
  using Inner = decltype(std::begin(std::declval<std::remove_reference_t<Range>&>()));
  Iterator(Inner inner, ProgressSink& sink) : inner_(std::move(inner)), sink_(&sink) {}

  decltype(auto) operator*() { return *inner_; }
  Iterator& operator++() {
    sink_->advance();
    ++inner_;
    return *this;
  }
  bool operator!=(const End& end) { return inner_ != end.inner(); }

 private:
  Inner inner_;
  ProgressSink* sink_;
};

}  // namespace hortator
