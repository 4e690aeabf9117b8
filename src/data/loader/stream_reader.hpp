#pragma once

#include <functional>
#include <hortator/detail/batch_source.hpp>
#include <memory>
#include <optional>

#include "data/loader/step_reader.hpp"

namespace hortator::data {

/// Where a stream is to be taken up, and how.
struct StreamStart {
  std::int64_t epoch = 0;
  std::shared_ptr<const StateDict> state = {};  ///< the stream's at the shard's start; without it samples are read over
  bool is_part = false;                         ///< of this rank alone: goes on for ever, by repeating its first batch
  std::optional<std::uint64_t> seed = {};       ///< of what it draws at random; without it that is left alone
};

/// Reads a stream step by step: all samples of a step of all ranks, of which it keeps those that its ranks will get.
/// One sample more tells whether there is a step to come, with drop_last as many as a step has.
class StreamReader final : public StepReader {
 public:
  StreamReader(StreamSource& source, const BatchShard& shard, StreamStart start)
      : source_(source), shard_(shard), start_(std::move(start)) {}

  /// Steps in ascending order.
  std::vector<Delivery> read(std::int64_t step, std::span<const int> ranks) override;

 private:
  void begin();
  void drawing(std::int64_t number, const std::function<void()>& work) const;
  void read_step(std::int64_t begin_of_step);
  void go_to(std::int64_t position);
  void advance();
  void learn_end();
  bool repeats_first() const;
  bool is_kept(std::int64_t sample) const;

  StreamSource& source_;
  BatchShard shard_;
  StreamStart start_;
  bool begun_ = false;
  std::int64_t next_ = 0;         ///< number of the sample to come
  std::int64_t step_begin_ = -1;  ///< of the samples that are kept for a step
  std::shared_ptr<const StateDict> state_;
};

}  // namespace hortator::data
