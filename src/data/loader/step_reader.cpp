#include "data/loader/step_reader.hpp"

namespace hortator::data {

std::vector<Delivery> SampleReader::read(std::int64_t step, std::span<const int> ranks) {
  std::vector<Delivery> deliveries;
  for (const int rank : ranks) {
    auto& delivery = deliveries.emplace_back(Delivery{.samples = shard_.spec().samples});
    delivery.batch = source_.read(listing_->samples(shard_.batch(step, rank)));
  }
  return deliveries;
}

}  // namespace hortator::data
