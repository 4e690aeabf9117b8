#pragma once

#include <concepts>
#include <cstdint>
#include <hortator/detail/batch_source.hpp>
#include <hortator/detail/dataset_source.hpp>
#include <hortator/detail/typed_source.hpp>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

/// Data sets whose samples come one after the other.
namespace hortator::detail {

/// `next()` returns a sample in a std::optional or a pointer to one; empty or null at the end.
template <typename S>
concept PullStream = requires(S& stream) {
  static_cast<bool>(stream.next());
  *stream.next();
};
template <typename S>
concept RangeStream = !PullStream<S> && std::ranges::input_range<S>;
template <typename S>
concept StreamDataset = PullStream<S> || RangeStream<S>;

template <typename S>
concept HasSetEpoch = requires(S& stream, std::int64_t epoch) {
  stream.set_epoch(epoch);
};
template <typename S>
concept HasReset = requires(S& stream) {
  stream.reset();
};

template <typename S>
concept HasShard = requires(S& stream, int world, int rank) {
  stream.shard(world, rank);
};

/// Takes the samples of either kind of stream one after the other.
template <typename S>
class StreamCursor;

template <PullStream S>
class StreamCursor<S> {
 public:
  using Sample = std::decay_t<decltype(*std::declval<S&>().next())>;

  static constexpr bool begins_again = HasSetEpoch<S> || HasReset<S>;
  void begin(S& /*stream*/) {}
  std::optional<Sample> next(S& stream) {
    auto sample = stream.next();
    return sample ? std::optional<Sample>(*std::move(sample)) : std::nullopt;
  }
};

template <RangeStream S>
class StreamCursor<S> {
 public:
  using Sample = std::decay_t<std::ranges::range_reference_t<S>>;

  static constexpr bool begins_again = std::ranges::forward_range<S> || HasSetEpoch<S> || HasReset<S>;
  void begin(S& stream) { at_.emplace(std::ranges::begin(stream)); }
  std::optional<Sample> next(S& stream) {
    if (*at_ == std::ranges::end(stream)) return std::nullopt;
    std::optional<Sample> sample(**at_);
    ++*at_;
    return sample;
  }

 private:
  std::optional<std::ranges::iterator_t<S>> at_;
};

template <StreamDataset S>
using StreamSampleOf = typename StreamCursor<S>::Sample;

/// The number of samples that a stream reports, or nothing.
template <StreamDataset S>
std::optional<std::int64_t> stated_size(S& stream) {
  if constexpr (SizedDataset<S>) {
    const auto size = stream.size();
    if constexpr (std::integral<std::decay_t<decltype(size)>>) {
      return static_cast<std::int64_t>(size);
    } else {
      return size ? std::optional<std::int64_t>(*size) : std::nullopt;
    }
  } else {
    return std::nullopt;
  }
}

/// A type-erased stream with the function that joins its samples.
template <StreamDataset Stream, typename Join>
class StreamSourceOf final
    : public TypedSource<std::decay_t<std::invoke_result_t<Join&, std::vector<StreamSampleOf<Stream>>>>,
                         data::StreamSource> {
 public:
  using Sample = StreamSampleOf<Stream>;
  using Batch = std::decay_t<std::invoke_result_t<Join&, std::vector<Sample>>>;
  static_assert(std::copyable<Sample>, "a stream's samples must be copyable: some are repeated in the last batch");

  StreamSourceOf(Stream stream, Join join)
      : stream_(std::move(stream)), join_(std::move(join)), size_(stated_size(stream_)) {}

  std::optional<std::int64_t> size() const override { return size_; }

  bool has_shards() const override { return HasShard<Stream>; }
  void shard([[maybe_unused]] int world, [[maybe_unused]] int rank) override {
    if constexpr (HasShard<Stream>) stream_.shard(world, rank);
  }

  void begin(std::int64_t epoch) override {
    if (std::exchange(begun_, true) && !StreamCursor<Stream>::begins_again) data::throw_cannot_begin_again();
    if constexpr (HasSetEpoch<Stream>) stream_.set_epoch(epoch);
    if constexpr (HasReset<Stream>) stream_.reset();
    cursor_.begin(stream_);
    kept_.clear();
    next_ = 0;
  }

  bool advance(bool keep) override {
    auto sample = take();
    if (!sample) return false;
    if (keep) kept_.emplace(next_, *std::move(sample));
    ++next_;
    return true;
  }

  void forget(std::int64_t first, std::int64_t last) override {
    kept_.erase(kept_.lower_bound(first), kept_.lower_bound(last));
  }

  std::shared_ptr<void> join(std::span<const std::int64_t> samples) override {
    std::vector<Sample> parts;
    parts.reserve(samples.size());
    for (const auto sample : samples) parts.push_back(kept_.at(sample));
    try {
      return std::make_shared<Batch>(join_(std::move(parts)));
    } catch (...) {
      data::throw_not_joined(samples);
    }
  }

  std::optional<StateDict> state() const override {
    if constexpr (Checkpointable<Stream>) {
      StateWriter state;
      stream_.save(state);
      return state;
    } else {
      return std::nullopt;
    }
  }

  void resume([[maybe_unused]] const StateDict& state, std::int64_t position) override {
    if constexpr (Checkpointable<Stream>) stream_.load(state);
    next_ = position;
  }

 private:
  std::optional<Sample> take() {
    try {
      return cursor_.next(stream_);
    } catch (...) {
      data::throw_unreadable({&next_, 1});
    }
  }

  Stream stream_;
  Join join_;
  std::optional<std::int64_t> size_;
  StreamCursor<Stream> cursor_;
  bool begun_ = false;
  std::int64_t next_ = 0;  ///< the number of the next sample
  std::map<std::int64_t, Sample> kept_;
};

}  // namespace hortator::detail
