#include "parallel/context/attention_tiles.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>

#include <limits>

#include "parallel/context/block_attention.hpp"
#include "support/catch.hpp"

using namespace hortator;
using parallel::SequenceLayout;

namespace {

/// The positions in the sequence of a rank's tokens.
std::vector<std::int64_t> positions_of(const SequenceLayout& layout, int rank) {
  std::vector<std::int64_t> positions;
  for (const auto& range : layout.ranges(rank)) {
    for (auto token = range.begin; token < range.end; ++token) positions.push_back(token);
  }
  return positions;
}

/// How often the tiles let each query see each key.
std::vector<int> pairs_in(const std::vector<parallel::AttentionTile>& tiles, std::size_t queries, std::size_t keys,
                          bool is_causal) {
  std::vector<int> seen(queries * keys, 0);
  for (const auto& tile : tiles) {
    for (std::int64_t query = 0; query < tile.queries.size(); ++query) {
      for (std::int64_t key = 0; key < tile.keys.size(); ++key) {
        if (is_causal && tile.has_hidden_keys() && tile.first_key + key > tile.first_query + query) continue;
        ++seen[static_cast<std::size_t>(tile.queries.begin + query) * keys +
               static_cast<std::size_t>(tile.keys.begin + key)];
      }
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("tiles let each query see each key once, or each that is not behind it") {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (const std::int64_t length : {8, 11, 16, 23}) {
      const SequenceLayout layout(length, ranks);
      for (int pair = 0; pair < ranks * ranks; ++pair) {
        const auto queries = positions_of(layout, pair / ranks), keys = positions_of(layout, pair % ranks);
        for (const std::int64_t max_tokens : {1, 2, 5, 100}) {
          for (const bool is_causal : {false, true}) {
            const auto tiles = attention_tiles(layout, pair / ranks, pair % ranks, is_causal, max_tokens);
            std::vector<int> expected;
            for (const auto query : queries) {
              for (const auto key : keys) expected.push_back(is_causal && key > query ? 0 : 1);
            }
            CHECK(pairs_in(tiles, queries.size(), keys.size(), is_causal) == expected);
            for (const auto& tile : tiles) {
              CHECK(tile.queries.size() <= max_tokens);
              CHECK(tile.keys.size() <= max_tokens);
              CHECK(queries[static_cast<std::size_t>(tile.queries.begin)] == tile.first_query);
              CHECK(keys[static_cast<std::size_t>(tile.keys.begin)] == tile.first_key);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("under a causal mask all ranks have the same number of tiles in each step of a ring but the first") {
  const SequenceLayout layout(32, 4);
  for (int asking = 0; asking < 4; ++asking) {
    for (int asked = 0; asked < 4; ++asked)
      CHECK(attention_tiles(layout, asking, asked, true, 100).size() == (asking == asked ? 3 : 2));
  }
}

TEST_CASE("blocks of keys merge to the whole, and a query that sees no key has zeros") {
  at::manual_seed(1);
  const auto queries = at::randn({2, 3, 5, 4}), keys = at::randn({2, 3, 8, 4}), values = at::randn({2, 3, 8, 6});
  auto mask = at::rand({5, 8}).gt(0.4);
  mask[0].zero_();                            // sees nothing
  mask.select(0, 1).narrow(0, 0, 4).zero_();  // sees nothing in the first block
  mask.select(0, 1).narrow(0, 4, 4).fill_(true);
  const auto block = [&](std::int64_t begin, std::int64_t size) {
    return parallel::AttentionBlock{.queries = queries,
                                    .keys = keys.narrow(-2, begin, size),
                                    .values = values.narrow(-2, begin, size),
                                    .mask = mask.narrow(-1, begin, size),
                                    .scale = 0.5};
  };
  const auto merged = parallel::attend(block(0, 4));
  parallel::merge(merged, parallel::attend(block(4, 3)));
  parallel::merge(merged, parallel::attend(block(7, 1)));
  CHECK(merged.output.select(-2, 0).abs().max().item<double>() == 0);
  CHECK(merged.logsumexp.select(-2, 0).max().item<double>() == -std::numeric_limits<double>::infinity());
  const auto scores = (at::matmul(queries, keys.transpose(-2, -1)) * 0.5).masked_fill(mask.logical_not(), -1e30);
  const auto expected = at::matmul(at::softmax(scores, -1), values);
  CHECK(at::allclose(merged.output.narrow(-2, 1, 4), expected.narrow(-2, 1, 4), 1e-5, 1e-6));
}

TEST_CASE("numbers that are not finite are seen in the result, not replaced") {
  auto queries = at::randn({1, 1, 3, 4});
  queries[0][0][1][2] = std::numeric_limits<double>::quiet_NaN();
  const auto keys = at::randn({1, 1, 6, 4});
  const auto merged =
      parallel::attend({.queries = queries, .keys = keys.narrow(-2, 0, 3), .values = keys.narrow(-2, 0, 3)});
  parallel::merge(
      merged, parallel::attend({.queries = queries, .keys = keys.narrow(-2, 3, 3), .values = keys.narrow(-2, 3, 3)}));
  CHECK(merged.output[0][0][1].isnan().all().item<bool>());
  CHECK(merged.output[0][0][0].isfinite().all().item<bool>());
}

TEST_CASE("16-bit blocks have float32 sums") {
  const auto queries = at::randn({1, 2, 3, 4}).to(at::kBFloat16), keys = at::randn({1, 2, 6, 4}).to(at::kBFloat16);
  const auto means = parallel::attend({.queries = queries, .keys = keys, .values = keys});
  CHECK(means.output.scalar_type() == at::kFloat);
  const auto exact = at::matmul(queries.to(at::kDouble), keys.to(at::kDouble).transpose(-2, -1)).logsumexp(-1, true);
  CHECK(at::allclose(means.logsumexp.to(at::kDouble), exact, 1e-6, 1e-6));
}
