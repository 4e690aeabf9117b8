#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <span>
#include <utility>

#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "data/orders/order.hpp"

namespace hortator::data {
namespace {

constexpr std::uint64_t purpose_of_weights = 4;

/// Draws numbers with probabilities proportional to weights, in constant time (Walker's alias method): there is one
/// equal column for each number, which is shared by that number and one other.
class AliasTable {
 public:
  /// The weights must be finite and not negative, and at least one must be positive.
  explicit AliasTable(std::span<const double> weights);

  /// Both arguments are 64 random bits.
  std::int64_t draw(std::uint64_t column, std::uint64_t coin) const;

 private:
  struct Column {
    double own;  ///< the probability of its own number
    std::int64_t other;
  };
  std::vector<Column> columns_;
};

// Weights with mean 1. Divides by the largest first, since the sum may overflow.
std::vector<double> normalized(std::span<const double> weights) {
  std::vector<double> shares(weights.begin(), weights.end());
  const double largest = *std::ranges::max_element(shares);
  double sum = 0;
  for (auto& share : shares) sum += share /= largest;
  for (auto& share : shares) share *= static_cast<double>(shares.size()) / sum;
  return shares;
}

AliasTable::AliasTable(std::span<const double> weights) : columns_(weights.size()) {
  auto left = normalized(weights);
  const auto heaviest = std::ranges::max_element(weights) - weights.begin();
  std::vector<std::size_t> scarce;
  std::vector<std::size_t> ample;
  for (std::size_t i = 0; i < left.size(); ++i) {
    // Columns that no later step changes are whole, except those of numbers that must never be drawn.
    columns_[i] = weights[i] > 0 ? Column{1, static_cast<std::int64_t>(i)} : Column{0, heaviest};
    (left[i] < 1 ? scarce : ample).push_back(i);
  }
  while (!scarce.empty() && !ample.empty()) {
    const auto small = scarce.back();
    const auto large = ample.back();
    scarce.pop_back();
    columns_[small] = {left[small], static_cast<std::int64_t>(large)};
    left[large] -= 1 - left[small];
    if (left[large] >= 1) continue;
    ample.pop_back();
    scarce.push_back(large);
  }
}

std::int64_t AliasTable::draw(std::uint64_t column, std::uint64_t coin) const {
  const auto number = core::high_product(column, columns_.size());
  const auto& [own, other] = columns_[number];
  constexpr double unit = 0x1p-53;
  return static_cast<double>(coin >> 11) * unit < own ? static_cast<std::int64_t>(number) : other;
}

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

// Names the weights in a loader's saved state.
std::string named(std::string_view kind, const std::vector<double>& weights) {
  const auto* bytes = reinterpret_cast<const char*>(weights.data());
  return text::concat(kind, ' ', std::hex, core::hash({bytes, weights.size() * sizeof(double)}));
}

std::shared_ptr<const Sampler> with_replacement(const std::vector<double>& weights,
                                                std::optional<std::int64_t> epoch_size) {
  const auto table = weights.empty() ? nullptr : std::make_shared<const AliasTable>(weights);
  const auto size = [count = weights.size(), epoch_size](std::int64_t dataset_size) {
    require_one_each("weights", count, dataset_size);
    return dataset_size == 0 ? 0 : epoch_size.value_or(dataset_size);
  };
  return make_sampler(named("weighted", weights), size, [table](const EpochKey& epoch) {
    return order_of([table, key = draws_of(epoch, purpose_of_weights)](std::int64_t position) {
      const auto bits = core::mix(key, static_cast<std::uint64_t>(position));
      return table->draw(bits, core::mix(bits, 1));
    });
  });
}

std::shared_ptr<const Sampler> without_replacement(std::vector<double> weights, std::int64_t epoch_size) {
  auto name = named("weighted once", weights);
  const auto size = [count = weights.size(), epoch_size](std::int64_t dataset_size) {
    require_one_each("weights", count, dataset_size);
    return epoch_size;
  };
  return make_sampler(std::move(name), size, [weights = std::move(weights), epoch_size](const EpochKey& epoch) {
    return listed_order(drawn_once_each(weights, epoch_size, draws_of(epoch, purpose_of_weights)));
  });
}

void validate(const std::vector<double>& weights, const WeightedOptions& options) {
  const auto wrong = std::ranges::find_if(weights, [](double weight) { return !(weight >= 0) || std::isinf(weight); });
  if (wrong != weights.end()) {
    throw UsageError({.what = text::concat("The weight of sample ", wrong - weights.begin(), " is ", *wrong),
                      .hint = "use finite weights of 0 or more"});
  }
  const auto drawable = std::ranges::count_if(weights, [](double weight) { return weight > 0; });
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
  if (options.replacement) return data::with_replacement(weights, options.epoch_size);
  const auto epoch_size = options.epoch_size.value_or(static_cast<std::int64_t>(weights.size()));
  return data::without_replacement(std::move(weights), epoch_size);
}

}  // namespace hortator
