#pragma once

#include <cstddef>
#include <cstdint>
#include <hortator/detail/stream_source.hpp>
#include <hortator/export.hpp>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace hortator {

/// Options of ShuffleBuffer.
struct ShuffleBufferOptions {
  std::int64_t size = 1000;  ///< samples in memory; larger is closer to a random order
  std::uint64_t seed = 0;    ///< of the order; must be equal on all ranks
};

namespace detail {
/// Throws UsageError unless the size is at least 1.
HORTATOR_API void check_shuffle_buffer(std::int64_t size);
/// A start for the generator that differs between epochs.
HORTATOR_API std::uint64_t shuffle_seed(std::uint64_t seed, std::int64_t epoch);
}  // namespace detail

/// The samples of a stream in a random order: `data_loader(hortator::ShuffleBuffer(stream, {.size = 4096}), {...})`.
/// Each sample is drawn from a buffer, where the stream's next one takes its place. The order depends on seed and epoch
/// only, so that all ranks see the same, and a run resumes exactly on any number of ranks. A stream with shard() gives
/// each rank some of its files, as without the buffer; then the number of ranks must stay the same.
template <detail::StreamDataset Stream>
class ShuffleBuffer {
 public:
  using Sample = detail::StreamSampleOf<Stream>;

  explicit ShuffleBuffer(Stream stream, const ShuffleBufferOptions& options = {})
      : stream_(std::move(stream)), options_(options) {
    detail::check_shuffle_buffer(options_.size);
  }

  std::optional<Sample> next() {
    if (!begun_) begin(0);
    while (!is_over_ && static_cast<std::int64_t>(buffer_.size()) < options_.size) {
      auto sample = cursor_.next(stream_);
      is_over_ = !sample;
      if (sample) buffer_.push_back(*std::move(sample));
    }
    if (buffer_.empty()) return std::nullopt;
    std::swap(buffer_[random_() % buffer_.size()], buffer_.back());
    std::optional<Sample> drawn(std::move(buffer_.back()));
    buffer_.pop_back();
    return drawn;
  }

  void set_epoch(std::int64_t epoch) requires(detail::StreamCursor<Stream>::begins_again) {
    if constexpr (detail::HasSetEpoch<Stream>) stream_.set_epoch(epoch);
    if constexpr (detail::HasReset<Stream>) stream_.reset();
    begin(epoch);
  }

  void shard(int world, int rank) requires(detail::HasShard<Stream>) { stream_.shard(world, rank); }

  auto size() requires(detail::SizedDataset<Stream>) { return stream_.size(); }

 private:
  void begin(std::int64_t epoch) {
    cursor_.begin(stream_);
    buffer_.clear();
    random_.seed(detail::shuffle_seed(options_.seed, epoch));
    is_over_ = false;
    begun_ = true;
  }

  Stream stream_;
  ShuffleBufferOptions options_;
  detail::StreamCursor<Stream> cursor_;
  std::vector<Sample> buffer_;
  std::mt19937_64 random_;  ///< the same numbers with every standard library
  bool is_over_ = false;
  bool begun_ = false;
};

}  // namespace hortator
