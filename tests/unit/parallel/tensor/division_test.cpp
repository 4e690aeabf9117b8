#include "parallel/tensor/division.hpp"

#include <numeric>

#include "support/catch.hpp"

using namespace hortator::parallel;

namespace {

std::int64_t count(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// The positions in memory of the elements that `rank` has of a whole tensor, in the order of its part.
Sizes positions(const Sizes& whole, const Division& division, int ranks, int rank) {
  Sizes all;
  const auto dim = static_cast<std::size_t>(division.dim);
  const auto block = whole[dim] / division.blocks, part = (block + division.padding) / ranks;
  std::int64_t inner = 1;
  for (std::size_t i = dim + 1; i < whole.size(); ++i) inner *= whole[i];
  for (std::int64_t at = 0; at < count(whole); ++at) {
    const auto in_block = at / inner % whole[dim] % block;
    if (in_block / part == rank) all.push_back(at);
  }
  return all;
}

/// All ways to write `elements` as sizes of up to `dims` dimensions.
std::vector<Sizes> shapes(std::int64_t elements, int dims) {
  if (dims == 1) return {{elements}};
  std::vector<Sizes> all;
  for (std::int64_t first = 1; first <= elements; ++first) {
    if (elements % first != 0) continue;
    for (auto rest : shapes(elements / first, dims - 1)) {
      rest.insert(rest.begin(), first);
      all.push_back(rest);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("a view keeps each rank's elements, for all shapes of 24 elements", "[serial]") {
  int views = 0, refused = 0;
  for (const int ranks : {2, 3, 4}) {
    for (const auto& whole : shapes(24, 3)) {
      for (std::int64_t dim = 0; dim < 3; ++dim) {
        for (std::int64_t blocks = 1; blocks <= 12; ++blocks) {
          const Division division{.dim = dim, .blocks = blocks};
          if (!divides(whole, division, ranks)) continue;
          for (const auto& sizes : shapes(24, 3)) {
            const auto there = after_view(whole, division, sizes, ranks);
            if (!there) {
              ++refused;
              continue;
            }
            ++views;
            CHECK(divides(sizes, there->division, ranks));
            CHECK(there->part == part_sizes(sizes, there->division, ranks));
            for (int rank = 0; rank < ranks; ++rank)
              CHECK(positions(whole, division, ranks, rank) == positions(sizes, there->division, ranks, rank));
          }
        }
      }
    }
  }
  CHECK(views > 1000);
  CHECK(refused > 0);
}

TEST_CASE("a view of a padded tensor keeps each rank's elements, for all shapes of 30 elements", "[serial]") {
  int views = 0, refused = 0;
  for (const int ranks : {2, 3, 4}) {
    for (const auto& whole : shapes(30, 3)) {
      for (std::int64_t dim = 0; dim < 3; ++dim) {
        const auto division = padded(dim, whole[static_cast<std::size_t>(dim)], ranks);
        if (!division || division->padding == 0) continue;
        REQUIRE(after_view(whole, *division, whole, ranks));
        for (const auto& sizes : shapes(30, 3)) {
          const auto there = after_view(whole, *division, sizes, ranks);
          if (!there) {
            ++refused;
            continue;
          }
          ++views;
          CHECK(there->part == part_sizes(sizes, there->division, ranks));
          CHECK(whole_sizes(there->part, there->division, ranks) == sizes);
          for (int rank = 0; rank < ranks; ++rank)
            CHECK(positions(whole, *division, ranks, rank) == positions(sizes, there->division, ranks, rank));
        }
      }
    }
  }
  CHECK(views > 100);
  CHECK(refused > 0);
}

TEST_CASE("padding makes parts equal, and no part is padding only", "[serial]") {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (std::int64_t size = 1; size <= 40; ++size) {
      const auto division = padded(1, size, ranks);
      const auto part = (size + ranks - 1) / ranks;
      CHECK(division.has_value() == (part * (ranks - 1) < size));
      if (!division) continue;
      CHECK(part_sizes({3, size}, *division, ranks) == Sizes{3, part});
      CHECK(whole_sizes({3, part}, *division, ranks) == Sizes{3, size});
      std::int64_t all = 0;
      for (int rank = 0; rank < ranks; ++rank) all += without_padding(part, *division, rank, ranks);
      CHECK(all == size);
      CHECK(after_slice(size, *division, 0, size) == division);
      if (division->padding > 0) CHECK_FALSE(after_slice(size, *division, 0, size - 1));
    }
  }
}

TEST_CASE("a view to the same sizes is never refused", "[serial]") {
  for (const int ranks : {1, 2, 4}) {
    for (const auto& whole : shapes(32, 3)) {
      for (std::int64_t dim = 0; dim < 3; ++dim) {
        const Division division{.dim = dim};
        if (!divides(whole, division, ranks)) continue;
        REQUIRE(after_view(whole, division, whole, ranks));
        if (ranks > 1) CHECK(after_view(whole, division, whole, ranks)->division == division);
      }
    }
  }
}

TEST_CASE("fused queries, keys and values stay divided by heads", "[serial]") {
  const auto fused = after_view({2, 5, 48}, {.dim = 2, .blocks = 3}, {2, 5, 3, 4, 4}, 2);
  REQUIRE(fused);
  CHECK(fused->division == Division{.dim = 3, .blocks = 1});
  CHECK(fused->part == Sizes{2, 5, 3, 2, 4});
  CHECK(after_slice(48, {.dim = 2, .blocks = 3}, 16, 32) == Division{.dim = 2, .blocks = 1});
  CHECK(after_slice(48, {.dim = 2, .blocks = 3}, 16, 48) == Division{.dim = 2, .blocks = 2});
  CHECK_FALSE(after_slice(48, {.dim = 2, .blocks = 3}, 8, 24));
  CHECK_FALSE(after_view({2, 5, 48}, {.dim = 2}, {2, 5, 3, 16}, 2));  // three heads of two ranks
}

TEST_CASE("sizes with -1 are completed", "[serial]") {
  CHECK(complete_sizes({2, -1}, 10) == Sizes{2, 5});
  CHECK(complete_sizes({-1, 3, 2}, 0) == Sizes{0, 3, 2});
  CHECK(complete_sizes({4}, 4) == Sizes{4});
}

TEST_CASE("a permutation moves the divided dimension", "[serial]") {
  CHECK(after_permutation({.dim = 2, .blocks = 3}, {2, 0, 1}) == Division{.dim = 0, .blocks = 3});
  CHECK(after_permutation({.dim = 0}, {-1, 0, 1}) == Division{.dim = 1});
}

TEST_CASE("the elements of every range of a part are found in the whole tensor, for all shapes of 24 elements",
          "[serial]") {
  for (const int ranks : {2, 3, 4}) {
    for (const auto& whole : shapes(24, 3)) {
      for (std::int64_t dim = 0; dim < 3; ++dim) {
        for (std::int64_t blocks = 1; blocks <= 12; ++blocks) {
          const Division division{.dim = dim, .blocks = blocks};
          if (!divides(whole, division, ranks)) continue;
          const auto part = part_sizes(whole, division, ranks);
          const auto runs = runs_of(part, division);
          CHECK(runs.rows * runs.run == count(part));
          for (int rank = 0; rank < ranks; ++rank) {
            const auto all = positions(whole, division, ranks, rank);
            for (std::int64_t begin = 0; begin < count(part); ++begin) {
              for (auto end = begin + 1; end <= count(part); ++end) {
                const auto cover = cover_of(runs, {begin, end}, rank, ranks);
                const bool is_exact = cover.size() == end - begin;
                CHECK((is_exact ? cover.begin == all[static_cast<std::size_t>(begin)]
                                : cover.begin % (runs.run * ranks) == 0));
                CHECK(cover.begin <= all[static_cast<std::size_t>(begin)]);
                CHECK(all[static_cast<std::size_t>(end - 1)] < cover.end);
                CHECK((is_exact || begin / runs.run < (end - 1) / runs.run));
              }
            }
            CHECK(cover_of(runs, {}, rank, ranks).size() == 0);
          }
        }
      }
    }
  }
}
