#include <algorithm>
#include <hortator/datasets/sampler.hpp>
#include <hortator/error.hpp>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "chi_square.hpp"
#include "data/orders/order.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

Batch drawn(const Sampler& sampler, const EpochKey& epoch) {
  const auto order = sampler.order(epoch);
  Batch all;
  for (std::int64_t i = 0; i < sampler.epoch_size(epoch.dataset_size); ++i) all.push_back(order->sample_at(i));
  return all;
}

Batch sorted_copy(Batch samples) {
  std::sort(samples.begin(), samples.end());
  return samples;
}

std::vector<double> frequencies(const Batch& samples, std::size_t of) {
  std::vector<double> counts(of);
  for (const auto sample : samples) ++counts[static_cast<std::size_t>(sample)];
  return counts;
}

}  // namespace

TEST_CASE("shuffled orders are functions of seed and epoch alone, and hold every sample") {
  for (const auto& sampler :
       {data::counter_sampler(), data::randperm_sampler(), block_sampler({.block = 3, .window = 2}),
        length_grouped_sampler(counted(50), {.batch_size = 2})}) {
    INFO(sampler->name());
    std::set<Batch> different;
    for (const std::uint64_t seed : {4, 5}) {
      for (const std::int64_t epoch : {0, 1, 2}) {
        const auto order = drawn(*sampler, {50, seed, epoch});
        CHECK(order == drawn(*sampler, {50, seed, epoch}));
        CHECK(sorted_copy(order) == counted(50));
        different.insert(order);
      }
    }
    // Hugging Face Accelerate adds seed and epoch: (4, 1) equals (5, 0).
    CHECK(different.size() == (sampler->name() == "randperm" ? 4 : 6));
    if (sampler->name().starts_with("length")) continue;  // of 50 samples only
    CHECK(drawn(*sampler, {0, 0, 0}).empty());
    CHECK(drawn(*sampler, {1, 0, 0}) == Batch{0});
  }
}

TEST_CASE("weighted draws are in proportion to the weights, and never of weight zero") {
  const std::vector<double> weights = {0.5, 0, 3, 1e-3, 0, 7, 2, 2, 0.1};
  const auto sampler = weighted_sampler(weights, {.epoch_size = 200'000});
  CHECK(sampler->epoch_size(9) == 200'000);
  const auto counts = frequencies(drawn(*sampler, {9, 1, 2}), 9);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> found;
  std::vector<double> expected;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) CHECK(counts[i] == 0);
    if (weights[i] == 0) continue;
    found.push_back(counts[i]);
    expected.push_back(200'000 * weights[i] / sum);
  }
  CHECK(is_by_chance(surprise(found, expected)));
  CHECK(drawn(*sampler, {9, 1, 2}) != drawn(*sampler, {9, 1, 3}));
  CHECK(weighted_sampler({1, 2, 3})->epoch_size(3) == 3);
}

TEST_CASE("weights of any size are drawn from, and neighbouring draws are independent") {
  const double huge = std::numeric_limits<double>::max();
  CHECK(is_by_chance(
      surprise(frequencies(drawn(*weighted_sampler({huge, huge, huge}, {.epoch_size = 9'000}), {3, 0, 0}), 3))));
  const auto tiny = drawn(*weighted_sampler({0, 5e-324, 0}, {.epoch_size = 100}), {3, 0, 0});
  CHECK(tiny == Batch(100, 1));

  const auto draws = drawn(*weighted_sampler(std::vector<double>(10, 1), {.epoch_size = 100'000}), {10, 3, 0});
  std::vector<double> pairs(100);
  for (std::size_t i = 0; i + 1 < draws.size(); i += 2) ++pairs[static_cast<std::size_t>(draws[i] * 10 + draws[i + 1])];
  CHECK(is_by_chance(surprise(pairs)));
}

TEST_CASE("without replacement samples are drawn one after the other, in proportion to what is left") {
  const auto sampler = weighted_sampler({1, 0, 2, 3}, {.epoch_size = 3, .replacement = false});
  std::map<Batch, double> orders;
  for (std::int64_t epoch = 0; epoch < 60'000; ++epoch) ++orders[drawn(*sampler, {4, 9, epoch})];
  const auto odds = [](double first, double second) { return 60'000 * first / 6 * second / (6 - first); };
  const std::map<Batch, double> expected = {{{0, 2, 3}, odds(1, 2)}, {{0, 3, 2}, odds(1, 3)}, {{2, 0, 3}, odds(2, 1)},
                                            {{2, 3, 0}, odds(2, 3)}, {{3, 0, 2}, odds(3, 1)}, {{3, 2, 0}, odds(3, 2)}};
  REQUIRE(orders.size() == 6);
  std::vector<double> found;
  std::vector<double> wanted;
  for (const auto& [order, count] : expected) {
    found.push_back(orders[order]);
    wanted.push_back(count);
  }
  CHECK(is_by_chance(surprise(found, wanted)));
  const auto two = weighted_sampler({1, 0, 2, 3}, {.epoch_size = 2, .replacement = false});
  CHECK(drawn(*two, {4, 9, 0}).size() == 2);
}

TEST_CASE("weights that cannot be drawn from are refused") {
  CHECK_THROWS_WITH(weighted_sampler({1, -1}), ContainsSubstring("The weight of sample 1 is -1"));
  CHECK_THROWS_WITH(weighted_sampler({std::nan("")}), ContainsSubstring("The weight of sample 0 is nan"));
  CHECK_THROWS_WITH(weighted_sampler({1, HUGE_VAL}), ContainsSubstring("The weight of sample 1 is inf"));
  CHECK_THROWS_WITH(weighted_sampler({0, 0}), ContainsSubstring("All weights are zero"));
  CHECK_THROWS_WITH(weighted_sampler({1}, {.epoch_size = -1}), ContainsSubstring("an epoch of -1 draws"));
  CHECK_THROWS_WITH(weighted_sampler({1, 0, 1}, {.replacement = false}),
                    ContainsSubstring("3 draws without replacement from 2 samples"));
  CHECK_THROWS_WITH(data_loader(Numbers{3}, {.sampler = weighted_sampler({1, 1})}),
                    ContainsSubstring("has 2 weights, but the data set has 3 samples"));
  CHECK(read(data_loader(Numbers{0}, {.sampler = weighted_sampler({})})).empty());
}

TEST_CASE("groups of like length: each sorted, the longest sample of all first") {
  Batch lengths;
  for (std::int64_t i = 0; i < 103; ++i) lengths.push_back(i * 37 % 101);
  const auto sampler = length_grouped_sampler(lengths, {.batch_size = 5, .mega_batches = 4});
  auto order = drawn(*sampler, {103, 0, 0});
  const auto length = [&](std::size_t position) { return lengths[static_cast<std::size_t>(order[position])]; };
  CHECK(length(0) == *std::max_element(lengths.begin(), lengths.end()));
  int rises = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (i % 20 != 0) rises += length(i) > length(i - 1) ? 1 : 0;
  }
  CHECK(rises <= 1);  // where the longest had its place

  // Which samples are together is as random as ever.
  std::vector<double> groups(5);
  for (std::int64_t epoch = 0; epoch < 3'000; ++epoch) {
    const auto samples = drawn(*sampler, {103, 1, epoch});
    const auto at = std::find(samples.begin(), samples.end(), 50) - samples.begin();
    if (at < 100) ++groups[static_cast<std::size_t>(at / 20)];
  }
  CHECK(is_by_chance(surprise(groups)));
}

TEST_CASE("by default fifty batches are sorted together, fewer of small data sets") {
  const auto group_of = [](std::int64_t samples, std::int64_t batch_size) {
    const auto order = drawn(*length_grouped_sampler(counted(samples), {.batch_size = batch_size}), {samples, 2, 0});
    const auto rise = std::adjacent_find(order.begin() + 1, order.end(), std::less<>());
    return rise - order.begin() + 1;
  };
  CHECK(group_of(1000, 2) == 100);
  CHECK(group_of(80, 2) == 20);
  CHECK_THROWS_WITH(length_grouped_sampler({1}, {.batch_size = 0}), ContainsSubstring("batch_size of 0"));
  CHECK_THROWS_WITH(data_loader(Numbers{3}, {.sampler = length_grouped_sampler({1}, {})}),
                    ContainsSubstring("has 1 lengths, but the data set has 3 samples"));
}

TEST_CASE("blocks: every sample once, and a window of positions reads as many blocks") {
  for (const std::int64_t samples : {1, 2, 7, 10, 12, 50, 97}) {
    for (const std::int64_t block : {1, 3, 4, 100}) {
      for (const std::int64_t window : {1, 2, 5}) {
        INFO(samples << " samples, blocks of " << block << ", windows of " << window);
        const auto sampler = block_sampler({.block = block, .window = window});
        for (const std::int64_t epoch : {0, 1, 2, 3}) {
          const auto order = drawn(*sampler, {samples, 8, epoch});
          REQUIRE(sorted_copy(order) == counted(samples));
          // Windows are read one after the other: a block never comes back.
          std::map<std::int64_t, std::int64_t> first;
          std::int64_t longest = 0;
          for (std::int64_t i = 0; i < samples; ++i) {
            const auto number = order[static_cast<std::size_t>(i)] / block;
            longest = std::max(longest, i - first.try_emplace(number, i).first->second);
          }
          CHECK(longest < window * block);
        }
      }
    }
  }
}

TEST_CASE("blocks come in any order, and samples are mixed within a window") {
  const auto sampler = block_sampler({.block = 8, .window = 4});
  std::vector<double> windows(5);
  std::vector<double> places(32);
  for (std::int64_t epoch = 0; epoch < 4'000; ++epoch) {
    const auto order = sampler->order({160, 1, epoch});
    for (std::int64_t i = 0; i < 160; ++i) {
      if (order->sample_at(i) != 77) continue;
      ++windows[static_cast<std::size_t>(i / 32)];
      ++places[static_cast<std::size_t>(i % 32)];
    }
  }
  CHECK(is_by_chance(surprise(windows)));
  CHECK(is_by_chance(surprise(places)));
  CHECK_THROWS_WITH(block_sampler({.block = 0}), ContainsSubstring("a block of 0"));
  CHECK_THROWS_WITH(block_sampler({.window = 0}), ContainsSubstring("a window of 0"));
}

TEST_CASE("the user's own order, as a function, as a list, and as a class") {
  const auto backwards =
      custom_sampler("backwards", [](const EpochKey& epoch, std::int64_t i) { return epoch.dataset_size - 1 - i; });
  CHECK(read(data_loader(Numbers{5}, {.batch_size = 2, .sampler = backwards})) == Batches{{4, 3}, {2, 1}, {0}});

  const auto listed = custom_sampler("by epoch",
                                     [](const EpochKey& epoch) {
                                       return Batch{epoch.epoch, epoch.epoch, 3};
                                     },
                                     {.epoch_size = 3});
  auto loader = data_loader(Numbers{5}, {.batch_size = 3, .sampler = listed});
  CHECK(loader.size() == 1);
  CHECK(read(loader) == Batches{{0, 0, 3}});
  CHECK(read(loader) == Batches{{1, 1, 3}});

  struct Twos final : Sampler, Order {
    std::string name() const override { return "twos"; }
    std::int64_t epoch_size(std::int64_t /*dataset_size*/) const override { return 4; }
    std::unique_ptr<const Order> order(const EpochKey& /*epoch*/) const override { return std::make_unique<Twos>(); }
    std::int64_t sample_at(std::int64_t /*position*/) const override { return 2; }
  };
  CHECK(read(data_loader(Numbers{5}, {.batch_size = 3, .sampler = std::make_shared<Twos>()})) ==
        Batches{{2, 2, 2}, {2}});
}

TEST_CASE("an order that does not fit the data set is refused, by number and position") {
  const auto wild = custom_sampler("wild", [](const EpochKey&, std::int64_t i) { return i == 3 ? 9 : i; });
  auto loader = data_loader(Numbers{5}, {.batch_size = 2, .sampler = wild});
  CHECK_THROWS_WITH(read(loader), ContainsSubstring("sample 9 at position 3, but the data set has 5 samples"));
  CHECK_THROWS_WITH(custom_sampler("short", [](const EpochKey&, std::int64_t i) { return i; }, {.epoch_size = -1}),
                    ContainsSubstring("an epoch of -1 positions"));
  const auto negative = custom_sampler("negative", [](const EpochKey&) { return Batch{0, -1}; });
  CHECK_THROWS_WITH(read(data_loader(Numbers{2}, {.sampler = negative})), ContainsSubstring("sample -1 at position 1"));
  CHECK_THROWS_WITH(read(data_loader(Numbers{3}, {.sampler = negative})),
                    ContainsSubstring("has listed 2 samples for epoch 0, expected 3"));
}
