#include "data/sharding/listing.hpp"

namespace hortator::data {

std::vector<std::int64_t> Listing::samples(const Positions& positions) const {
  auto numbers = samples_at(*order_, positions, count_);
  if (!varies()) return numbers;
  std::vector<std::int64_t> samples;
  for (const auto number : numbers) samples.insert(samples.end(), batch(number).begin(), batch(number).end());
  return samples;
}

std::int64_t Listing::rows(std::int64_t position) const {
  return varies() ? static_cast<std::int64_t>(batch(order_->sample_at(position)).size()) : 1;
}

}  // namespace hortator::data
