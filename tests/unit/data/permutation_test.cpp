#include "data/orders/permutation.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "chi_square.hpp"
#include "core/hash.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;
using data::Permutation;

namespace {

Batch images(const Permutation& permutation, std::int64_t first, std::int64_t count, std::uint64_t tweak = 0) {
  Batch all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(permutation(first + i, tweak));
  return all;
}

std::size_t bin(std::int64_t image, std::int64_t size, std::size_t bins) {
  return static_cast<std::size_t>(static_cast<double>(image) / static_cast<double>(size) * static_cast<double>(bins));
}

/// Pairs of an image and the one after it, in a square of bins.
std::vector<double> neighbours(const Batch& images, std::int64_t size, std::size_t bins) {
  std::vector<double> counts(bins * bins);
  for (std::size_t i = 0; i + 1 < images.size(); ++i)
    ++counts[bin(images[i], size, bins) * bins + bin(images[i + 1], size, bins)];
  return counts;
}

}  // namespace

TEST_CASE("every size has a bijection, another one for each key and tweak, and a way back") {
  for (std::int64_t size = 1; size <= 700; ++size) {
    std::set<Batch> different;
    for (const std::uint64_t key : {0, 1, 7}) {
      for (const std::uint64_t tweak : {0, 1}) {
        const Permutation permutation(size, key);
        auto all = images(permutation, 0, size, tweak);
        different.insert(all);
        std::sort(all.begin(), all.end());
        REQUIRE(all == counted(size));
      }
      const Permutation permutation(size, key);
      for (std::int64_t i = 0; i < size; ++i) REQUIRE(permutation.position_of(permutation(i)) == i);
    }
    if (size > 20) REQUIRE(different.size() == 6);
  }
}

TEST_CASE("sizes beyond all memory have one, too") {
  for (const std::int64_t size : {(1LL << 32) - 1, 1LL << 32, 100'000'000'007LL, (1LL << 40) + 1, 1LL << 60}) {
    const Permutation permutation(size, 3);
    std::set<std::int64_t> seen;
    for (const std::int64_t position : {std::int64_t{0}, size / 2, size - 100}) {
      for (std::int64_t i = 0; i < 100; ++i) {
        const auto image = permutation(position + i);
        REQUIRE(image >= 0);
        REQUIRE(image < size);
        REQUIRE(permutation.position_of(image) == position + i);
        seen.insert(image);
      }
    }
    CHECK(seen.size() == 300);
  }
}

TEST_CASE("for any size, a position maps to any other with the same probability") {
  for (const std::int64_t size : {2, 3, 5, 12, 16, 100, 1000}) {
    for (const std::int64_t position : {std::int64_t{0}, size / 2, size - 1}) {
      std::vector<double> counts(static_cast<std::size_t>(size));
      for (std::uint64_t key = 0; key < 30'000; ++key)
        ++counts[static_cast<std::size_t>(Permutation(size, key)(position))];
      INFO("size " << size << " position " << position << ": " << surprise(counts));
      CHECK(is_by_chance(surprise(counts)));
    }
  }
}

TEST_CASE("all orders of a few samples are equally likely") {
  for (const std::int64_t size : {3, 4, 5}) {
    const std::map<std::int64_t, std::size_t> factorial = {{3, 6}, {4, 24}, {5, 120}};
    std::map<Batch, double> found;
    for (std::uint64_t key = 0; key < 40'000; ++key) ++found[images(Permutation(size, core::mix(5, key)), 0, size)];
    std::vector<double> counts;
    for (const auto& [order, count] : found) counts.push_back(count);
    CHECK(counts.size() == factorial.at(size));
    INFO("size " << size << ": " << surprise(counts));
    CHECK(is_by_chance(surprise(counts)));
  }
}

TEST_CASE("neighbours in the order are anywhere in the data set") {
  constexpr std::size_t bins = 16;
  constexpr double fixed = 2 * bins - 1;  // rows and columns: each bin holds its share of the data set
  for (const std::int64_t size : {1'024, 5'008, 65'536, 1'000'000}) {
    for (const std::uint64_t key : {1, 2}) {
      const auto all = images(Permutation(size, key), 0, size);
      INFO("size " << size << " key " << key);
      CHECK(is_by_chance(surprise(neighbours(all, size, bins), fixed)));
      std::vector<double> steps(64);
      for (std::size_t i = 0; i + 1 < all.size(); ++i) ++steps[bin((all[i + 1] - all[i] + size) % size, size, 64)];
      CHECK(is_by_chance(surprise(steps)));
    }
  }
}

TEST_CASE("the beginning of a very long order is spread over all of the data set, to the last digit") {
  constexpr std::int64_t size = 100'000'000'000;
  const auto start = images(Permutation(size, 11), 0, 300'000);
  std::vector<double> highs(256);
  std::vector<double> lows(256);
  for (const auto image : start) {
    ++highs[bin(image, size, 256)];
    ++lows[static_cast<std::size_t>(image % 256)];
  }
  CHECK(is_by_chance(surprise(highs)));
  CHECK(is_by_chance(surprise(lows)));
  CHECK(is_by_chance(surprise(neighbours(start, size, 16))));
}

TEST_CASE("orders of neighbouring keys and tweaks have nothing to do with each other") {
  constexpr std::int64_t size = 200'000;
  constexpr std::size_t bins = 16;
  const auto one = images(Permutation(size, 20), 0, size);
  for (const auto& other : {images(Permutation(size, 21), 0, size), images(Permutation(size, 20), 0, size, 1)}) {
    std::vector<double> pairs(bins * bins);
    std::int64_t same = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      ++pairs[bin(one[i], size, bins) * bins + bin(other[i], size, bins)];
      same += one[i] == other[i] ? 1 : 0;
    }
    CHECK(is_by_chance(surprise(pairs, 2 * bins - 1)));
    CHECK(same < 8);  // one is expected
  }
}
