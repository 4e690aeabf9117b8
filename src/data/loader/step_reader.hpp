#pragma once

#include <c10/core/Event.h>

#include <cstdint>
#include <hortator/training/state_dict.hpp>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/loader/batch_random.hpp"
#include "data/sharding/batch_shard.hpp"
#include "data/sharding/listing.hpp"

namespace hortator::data {

/// A batch on its way to its rank.
struct Delivery {
  std::shared_ptr<void> batch = {};  ///< null: there is none for this rank
  std::int64_t new_rows = 0;         ///< rows that are no repetition, if the rank reads its own part of a stream
  std::int64_t samples = endless;    ///< samples of the whole pass, once known
  std::shared_ptr<const StateDict> state = {};  ///< of the stream after this step, if the stream reports it
  std::optional<c10::Event> arrival = {};  ///< set if the batch is being copied to the device: when the copy is done
};

/// Reads the batches of one pass.
class StepReader {
 public:
  virtual ~StepReader() = default;
  /// Reads the batches of `ranks` in one step. For streams, steps must be ascending; the first ones may be skipped.
  virtual std::vector<Delivery> read(std::int64_t step, std::span<const int> ranks) = 0;
};

/// Reads from a data set with numbered samples: any step, in any order.
class SampleReader final : public StepReader {
 public:
  SampleReader(SampleSource& source, const BatchShard& shard, std::shared_ptr<const Listing> listing,
               const DrawSeeds& seeds)
      : source_(source), shard_(shard), listing_(std::move(listing)), seeds_(seeds) {}

  std::vector<Delivery> read(std::int64_t step, std::span<const int> ranks) override {
    std::vector<Delivery> deliveries;
    for (const int rank : ranks) {
      auto& delivery = deliveries.emplace_back(Delivery{.samples = shard_.spec().samples});
      const auto positions = shard_.batch(step, rank);
      const auto samples = listing_->samples(positions);
      const BatchRandom random(seeds_, positions, samples.size());
      delivery.batch = source_.read(samples);
    }
    return deliveries;
  }

 private:
  SampleSource& source_;
  BatchShard shard_;
  std::shared_ptr<const Listing> listing_;
  DrawSeeds seeds_;
};

}  // namespace hortator::data
