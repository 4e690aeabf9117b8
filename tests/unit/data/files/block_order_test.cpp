#include <hortator/block_order.hpp>
#include <hortator/error.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "support/catch.hpp"

using namespace hortator;

namespace {

std::vector<std::int64_t> all(std::int64_t samples, const BlockOrderOptions& options, std::uint64_t seed = 5,
                              std::int64_t epoch = 0) {
  const BlockOrder order(samples, options, seed, epoch);
  std::vector<std::int64_t> order_of_samples;
  for (std::int64_t i = 0; i < samples; ++i) order_of_samples.push_back(order(i));
  return order_of_samples;
}

bool is_permutation(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("every sample stands at one position, whatever the sizes") {
  for (std::int64_t samples = 0; samples <= 40; ++samples) {
    for (std::int64_t block = 1; block <= 12; ++block) {
      for (const std::int64_t window : {1, 2, 3, 7, 100}) {
        for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
          INFO(samples << " by " << block << " and " << window);
          CHECK(is_permutation(all(samples, {.block = block, .window = window}, seed)));
        }
      }
    }
  }
}

TEST_CASE("each block is used in one stretch of few blocks") {
  constexpr std::int64_t block = 10;
  constexpr std::int64_t window = 4;
  const auto order = all(1007, {.block = block, .window = window});
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> stretch;  // of each block: first and last position
  for (std::int64_t i = 0; i < 1007; ++i) {
    const auto of_sample = order[static_cast<std::size_t>(i)] / block;
    stretch.try_emplace(of_sample, i, i).first->second.second = i;
  }
  CHECK(stretch.size() == 101);
  for (const auto& [number, positions] : stretch) CHECK(positions.second - positions.first < block * window);
  // Within a window the blocks are mixed: neighbours are mostly of different blocks, and blocks are not in order.
  int together = 0;
  for (std::size_t i = 1; i < order.size(); ++i) together += order[i] / block == order[i - 1] / block ? 1 : 0;
  CHECK(together < 400);
  CHECK_FALSE(std::ranges::is_sorted(order));
}

TEST_CASE("orders differ by seed and by epoch, and are the same wherever they are computed") {
  const BlockOrderOptions options{.block = 3, .window = 2};
  CHECK(all(50, options, 1, 0) == all(50, options, 1, 0));
  CHECK(all(50, options, 1, 0) != all(50, options, 2, 0));
  CHECK(all(50, options, 1, 0) != all(50, options, 1, 1));
  // Recorded once: another machine, compiler or release must give the same.
  CHECK(all(10, options, 7, 3) == std::vector<std::int64_t>{4, 5, 9, 3, 6, 0, 1, 7, 8, 2});
}

TEST_CASE("any position of a very long order is there at once") {
  constexpr std::int64_t samples = 100'000'000'003;
  const BlockOrder order(samples, {.block = 1000, .window = 64}, 1, 2);
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const auto sample = order(samples - 1 - i * 99'999'983);
    CHECK((sample >= 0 && sample < samples));
    seen.insert(sample);
  }
  CHECK(seen.size() == 1000);
}

TEST_CASE("each position is as likely for a sample as any other") {
  // 2400 seeds: each of 6 samples at each of 6 positions 400 times, give or take.
  std::map<std::pair<std::int64_t, std::int64_t>, int> counts;
  for (std::uint64_t seed = 0; seed < 2400; ++seed) {
    const auto order = all(6, {.block = 1, .window = 6}, seed);
    for (std::int64_t i = 0; i < 6; ++i) ++counts[{i, order[static_cast<std::size_t>(i)]}];
  }
  CHECK(counts.size() == 36);
  for (const auto& [place, count] : counts) CHECK((count > 320 && count < 480));
}

TEST_CASE("blocks and windows of nothing are refused") {
  CHECK_THROWS_AS(BlockOrder(10, {.block = 0}, 0, 0), UsageError);
  CHECK_THROWS_AS(BlockOrder(10, {.window = 0}, 0, 0), UsageError);
  CHECK_THROWS_AS(BlockOrder(-1, {}, 0, 0), UsageError);
}
