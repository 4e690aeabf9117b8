#include "data/listing.hpp"

namespace hortator::data {

const std::vector<std::int64_t>& Listing::batch(std::int64_t position) const {
  return (*batches_)[static_cast<std::size_t>(order_->sample_at(position))];
}

std::vector<std::int64_t> Listing::samples(const Positions& positions) const {
  auto listed = samples_at(*order_, positions, count_);
  if (!varies()) return listed;
  std::vector<std::int64_t> samples;
  for (const auto number : listed) {
    const auto& together = (*batches_)[static_cast<std::size_t>(number)];
    samples.insert(samples.end(), together.begin(), together.end());
  }
  return samples;
}

std::int64_t Listing::rows(std::int64_t position) const {
  return varies() ? static_cast<std::int64_t>(batch(position).size()) : 1;
}

}  // namespace hortator::data
