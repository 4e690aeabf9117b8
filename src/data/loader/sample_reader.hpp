#pragma once

#include <memory>

#include "data/loader/step_reader.hpp"
#include "data/sharding/listing.hpp"

namespace hortator::data {

/// Reads from a data set with numbered samples: any step, in any order.
class SampleReader final : public StepReader {
 public:
  SampleReader(SampleSource& source, const BatchShard& shard, std::shared_ptr<const Listing> listing)
      : source_(source), shard_(shard), listing_(std::move(listing)) {}

  std::vector<Delivery> read(std::int64_t step, std::span<const int> ranks) override;

 private:
  SampleSource& source_;
  BatchShard shard_;
  std::shared_ptr<const Listing> listing_;
};

}  // namespace hortator::data
