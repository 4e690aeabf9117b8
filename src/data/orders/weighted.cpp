#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <numeric>

#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "data/orders/alias_table.hpp"
#include "data/orders/order.hpp"

namespace hortator::data {
namespace {

constexpr std::uint64_t purpose_of_weights = 4;

class DrawnOrder final : public Order {
 public:
  DrawnOrder(std::shared_ptr<const AliasTable> table, std::uint64_t key) : table_(std::move(table)), key_(key) {}

  std::int64_t sample_at(std::int64_t position) const override {
    const auto bits = core::mix(key_, static_cast<std::uint64_t>(position));
    return table_->draw(bits, core::mix(bits, 1));
  }

 private:
  std::shared_ptr<const AliasTable> table_;
  std::uint64_t key_;
};

// Draws without replacement: the order in which clocks ring that each ring at a random time with the weight as rate.
std::vector<std::int64_t> drawn_once_each(std::span<const double> weights, std::int64_t count, std::uint64_t key) {
  struct Clock {
    double rings_at;
    std::int64_t sample;
    bool operator<(const Clock& other) const {
      return rings_at != other.rings_at ? rings_at < other.rings_at : sample < other.sample;
    }
  };
  std::vector<Clock> clocks;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    constexpr double unit = 0x1p-53;
    const double luck = static_cast<double>((core::mix(key, i) >> 11) + 1) * unit;
    clocks.push_back({.rings_at = -std::log(luck) / weights[i], .sample = static_cast<std::int64_t>(i)});
  }
  std::partial_sort(clocks.begin(), clocks.begin() + count, clocks.end());
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < count; ++i) samples.push_back(clocks[static_cast<std::size_t>(i)].sample);
  return samples;
}

class WeightedSampler final : public Sampler {
 public:
  WeightedSampler(std::vector<double> weights, std::optional<std::int64_t> epoch_size)
      : count_(weights.size()),
        epoch_size_(epoch_size),
        fingerprint_(fingerprint(weights)),
        table_(weights.empty() ? nullptr : std::make_shared<AliasTable>(weights)) {}

  static std::uint64_t fingerprint(const std::vector<double>& weights) {
    return core::hash({reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(double)});
  }
  std::string name() const override { return text::concat("weighted ", std::hex, fingerprint_); }
  std::int64_t epoch_size(std::int64_t dataset_size) const override {
    require_one_each("weights", count_, dataset_size);
    return dataset_size == 0 ? 0 : epoch_size_.value_or(dataset_size);
  }
  std::unique_ptr<const Order> order(const EpochKey& epoch) const override {
    return std::make_unique<DrawnOrder>(table_, draws_of(epoch, purpose_of_weights));
  }

 private:
  std::size_t count_;
  std::optional<std::int64_t> epoch_size_;
  std::uint64_t fingerprint_;
  std::shared_ptr<const AliasTable> table_;
};

class WeightedOnceSampler final : public Sampler {
 public:
  WeightedOnceSampler(std::vector<double> weights, std::int64_t epoch_size)
      : weights_(std::move(weights)), epoch_size_(epoch_size) {}

  std::string name() const override {
    return text::concat("weighted once ", std::hex, WeightedSampler::fingerprint(weights_));
  }
  std::int64_t epoch_size(std::int64_t dataset_size) const override {
    require_one_each("weights", weights_.size(), dataset_size);
    return epoch_size_;
  }
  std::unique_ptr<const Order> order(const EpochKey& epoch) const override {
    return listed_order(drawn_once_each(weights_, epoch_size_, draws_of(epoch, purpose_of_weights)));
  }

 private:
  std::vector<double> weights_;
  std::int64_t epoch_size_;
};

void validate(const std::vector<double>& weights, const WeightedOptions& options) {
  const auto wrong =
      std::find_if(weights.begin(), weights.end(), [](double weight) { return !(weight >= 0) || std::isinf(weight); });
  if (wrong != weights.end()) {
    throw UsageError({.what = text::concat("The weight of sample ", wrong - weights.begin(), " is ", *wrong),
                      .hint = "use finite weights of 0 or more"});
  }
  const auto drawable = std::count_if(weights.begin(), weights.end(), [](double weight) { return weight > 0; });
  if (!weights.empty() && drawable == 0) throw UsageError({.what = "All weights are zero", .why = "nothing is drawn"});
  const auto wanted = options.epoch_size.value_or(static_cast<std::int64_t>(weights.size()));
  if (wanted < 0)
    throw UsageError(
        {.what = text::concat("A weighted sampler has an epoch of ", wanted, " draws"), .hint = "use 0 or more"});
  if (!options.replacement && wanted > drawable) {
    throw UsageError(
        {.what = text::concat("A weighted sampler has an epoch of ", wanted, " draws without replacement from ",
                              text::count(drawable, "sample"), " whose weight is not zero"),
         .hint = "set a smaller epoch_size"});
  }
}

}  // namespace
}  // namespace hortator::data

namespace hortator {

std::shared_ptr<const Sampler> weighted_sampler(std::vector<double> weights, const WeightedOptions& options) {
  data::validate(weights, options);
  if (options.replacement) return std::make_shared<data::WeightedSampler>(std::move(weights), options.epoch_size);
  const auto epoch_size = options.epoch_size.value_or(static_cast<std::int64_t>(weights.size()));
  return std::make_shared<data::WeightedOnceSampler>(std::move(weights), epoch_size);
}

}  // namespace hortator
