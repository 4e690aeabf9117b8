#include "data/sharding/listing.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::data {
namespace {

void check(const std::vector<std::int64_t>& batch, std::size_t number, std::int64_t samples) {
  if (batch.empty()) {
    throw UsageError({.what = text::concat("Batch ", number, " of the given batches is empty"),
                      .why = "each of them is one iteration of the loop on some rank",
                      .hint = "leave it out"});
  }
  const auto is_outside = [&](std::int64_t sample) { return sample < 0 || sample >= samples; };
  const auto wrong = std::ranges::find_if(batch, is_outside);
  if (wrong == batch.end()) return;
  throw UsageError({.what = text::concat("Batch ", number, " of the given batches has sample ", *wrong,
                                         ", but the data set has ", samples),
                    .hint = "samples are counted from 0"});
}

// The samples at these positions. Throws UsageError for a sample that the data set does not have.
std::vector<std::int64_t> samples_at(const Order& order, const Positions& positions, std::int64_t dataset_size) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(positions.size()));
  for (std::int64_t i = 0; i < positions.size(); ++i) {
    const auto sample = order.sample_at(positions[i]);
    if (sample < 0 || sample >= dataset_size) {
      throw UsageError({.what = text::concat("The sampler has sample ", sample, " at position ", positions[i],
                                             ", but the data set has ", text::count(dataset_size, "sample"))});
    }
    samples[static_cast<std::size_t>(i)] = sample;
  }
  return samples;
}

}  // namespace

std::shared_ptr<const BatchList> ChosenBatches::of(std::uint64_t seed, std::int64_t epoch) const {
  if (latest_ && seed == seed_ && epoch == epoch_) return latest_;
  auto batches = std::make_shared<const BatchList>(choose_(seed, epoch));
  for (std::size_t i = 0; i < batches->size(); ++i) check((*batches)[i], i, samples_);
  latest_ = std::move(batches);
  seed_ = seed;
  epoch_ = epoch;
  return latest_;
}

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
