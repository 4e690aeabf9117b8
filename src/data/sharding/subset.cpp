#include <algorithm>
#include <hortator/datasets/subset.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "data/orders/order.hpp"

namespace hortator::data {

std::shared_ptr<const Order> order_of_subset(std::vector<std::int64_t> samples, std::int64_t dataset_size) {
  const auto wrong = std::find_if(samples.begin(), samples.end(),
                                  [&](std::int64_t sample) { return sample < 0 || sample >= dataset_size; });
  if (wrong != samples.end()) {
    throw UsageError({.what = text::concat("A subset has sample ", *wrong, ", but the data set has ",
                                           text::count(dataset_size, "sample"))});
  }
  return listed_order(std::move(samples));
}

std::vector<std::int64_t> samples_at(const Order& order, std::span<const std::int64_t> positions) {
  std::vector<std::int64_t> samples;
  samples.reserve(positions.size());
  for (const auto position : positions) samples.push_back(order.sample_at(position));
  return samples;
}

}  // namespace hortator::data
