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

/// A number to show: of any kind, or a tensor with one element. A tensor is detached at once and read only when it is
/// drawn, so that logging every step does not make the CPU wait for the GPU every step.
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

/// What a running loop tells about itself. accelerator.progress() has one that draws on the first rank of each machine
/// and is silent elsewhere.
class HORTATOR_API ProgressSink {
 public:
  ProgressSink() = default;
  virtual ~ProgressSink();
  ProgressSink(const ProgressSink&) = delete;
  ProgressSink& operator=(const ProgressSink&) = delete;

  /// A loop of `total` steps begins (below 0: nobody knows of how many), of which an earlier run took the first `done`;
  /// inside another one it takes its place until it is finished.
  virtual void start(std::string_view title, std::int64_t total, std::int64_t done) = 0;
  virtual void advance() = 0;  ///< one more step is done
  /// A number to show from now on, replacing that of the same name; in the bars to come as well.
  virtual void set(std::string_view name, Loggable value) = 0;
  /// The innermost loop has ended, by itself or not.
  virtual void finish() noexcept = 0;
};

/// `range`, telling `sink` how far a loop over it has come: `for (auto& item : ProgressRange(range, sink, "title"))`.
/// A temporary is kept, anything else is borrowed. The loop may end by break, return or exception.
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
  // A loader of a stream may not know.
  std::int64_t total() const {
    if constexpr (requires { range_.has_size(); }) {
      if (!range_.has_size()) return -1;
    }
    return static_cast<std::int64_t>(std::size(range_));
  }
  // A loader whose state was loaded goes on in the middle of an epoch.
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
