#include "data/listing.hpp"

namespace hortator::data {

const std::vector<std::int64_t>& Listing::batch(std::int64_t position) const {
  return (*batches_)[static_cast<std::size_t>(order_->sample_at(position))];
}

std::vector<std::int64_t> Listing::samples(const Positions& positions) const {
  std::vector<std::int64_t> samples;
  samples.reserve(static_cast<std::size_t>(positions.size()));
  for (std::int64_t i = 0; i < positions.size(); ++i) {
    if (!varies()) {
      samples.push_back(order_->sample_at(positions[i]));
      continue;
    }
    const auto& together = batch(positions[i]);
    samples.insert(samples.end(), together.begin(), together.end());
  }
  return samples;
}

std::int64_t Listing::rows(std::int64_t position) const {
  return varies() ? static_cast<std::int64_t>(batch(position).size()) : 1;
}

}  // namespace hortator::data
