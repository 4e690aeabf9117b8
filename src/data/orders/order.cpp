#include "data/orders/order.hpp"

#include <hortator/error.hpp>

#include "core/hash.hpp"
#include "core/text/text.hpp"

namespace hortator {

Order::~Order() = default;
Sampler::~Sampler() = default;

namespace data {
namespace {

class ListedOrder final : public Order {
 public:
  explicit ListedOrder(std::vector<std::int64_t> samples) : samples_(std::move(samples)) {}
  std::int64_t sample_at(std::int64_t position) const override { return samples_[static_cast<std::size_t>(position)]; }

 private:
  std::vector<std::int64_t> samples_;
};

}  // namespace

std::unique_ptr<const Order> listed_order(std::vector<std::int64_t> samples) {
  return std::make_unique<ListedOrder>(std::move(samples));
}

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

std::uint64_t draws_of(const EpochKey& epoch, std::uint64_t purpose) {
  return core::mix(core::mix(core::mix(0, purpose), epoch.seed), static_cast<std::uint64_t>(epoch.epoch));
}

void require_one_each(std::string_view what, std::size_t count, std::int64_t dataset_size) {
  if (static_cast<std::int64_t>(count) == dataset_size) return;
  throw UsageError({.what = text::concat("The sampler has ", count, ' ', what, ", but the data set has ",
                                         text::count(dataset_size, "sample")),
                    .hint = "give one for each sample"});
}

}  // namespace data
}  // namespace hortator
