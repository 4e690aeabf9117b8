#pragma once

#include <hortator/detail/batch_source.hpp>
#include <memory>
#include <optional>

#include "data/loader/batch_random.hpp"
#include "data/loader/step_reader.hpp"

namespace hortator::data {

/// Where and how to begin to read a stream.
struct StreamStart {
  std::int64_t epoch = 0;
  std::shared_ptr<const StateDict> state =
      {};                ///< the stream's state at the shard's start; without it earlier samples are read and skipped
  bool is_part = false;  ///< the stream is this rank's own part: continues forever by repeating its first batch
  int rank = 0;          ///< whose part it is
  DrawSeeds seeds = DrawSeeds();  ///< of the random numbers that the stream and the join function draw
};

/// Reads a stream step by step: reads the samples of all ranks and keeps those of its own ranks. Reads one sample ahead
/// to know whether another step follows, with drop_last a whole step ahead.
class StreamReader final : public StepReader {
 public:
  StreamReader(StreamSource& source, const BatchShard& shard, StreamStart start)
      : source_(source),
        shard_(shard),
        start_(std::move(start)),
        seeds_(start_.is_part ? start_.seeds.of_part(start_.rank) : start_.seeds) {}

  /// Steps must be ascending.
  std::vector<Delivery> read(std::int64_t step, std::span<const int> ranks) override;

 private:
  void begin();
  void read_step(std::int64_t begin_of_step);
  void go_to(std::int64_t position);
  void advance();
  void note_end();
  bool repeats_first() const;
  bool is_kept(std::int64_t sample) const;

  StreamSource& source_;
  BatchShard shard_;
  StreamStart start_;
  DrawSeeds seeds_;
  runtime::OwnGenerator numbers_;
  bool begun_ = false;
  std::int64_t next_ = 0;         ///< number of the next sample
  std::int64_t step_begin_ = -1;  ///< first sample of the step whose samples are kept
  std::shared_ptr<const StateDict> state_;
};

}  // namespace hortator::data
