#include "data/sharding/batch_shard.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <numeric>
#include <set>
#include <vector>

#include "support/catch.hpp"

using namespace hortator;
using data::BatchShard;
using data::ShardSpec;

namespace {

using Batch = std::vector<std::int64_t>;
using Batches = std::vector<Batch>;

Batches planned(const ShardSpec& spec) {
  const BatchShard shard(spec);
  Batches batches;
  for (std::int64_t step = 0; step < shard.size(); ++step) {
    const auto positions = shard.batch(step);
    Batch& batch = batches.emplace_back();
    for (std::int64_t i = 0; i < positions.size(); ++i) batch.push_back(positions[i]);
  }
  return batches;
}

// The expected plan by lists: writes the order out, extends or cuts it by the options, and distributes it by counting.
Batches naive(const ShardSpec& spec) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(spec.samples));
  std::iota(order.begin(), order.end(), 0);
  const auto per_rank = static_cast<std::size_t>(spec.split ? spec.batch_size / spec.world : spec.batch_size);
  const auto ranks = static_cast<std::size_t>(spec.world);
  if (spec.drop_last) {
    while (order.size() % (per_rank * ranks) != 0) order.pop_back();
  } else if (spec.even && !order.empty()) {
    for (std::size_t next = 0; order.size() % (per_rank * ranks) != 0; ++next) order.push_back(order[next]);
  }
  Batches batches;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::size_t turn = at / per_rank;
    if (turn % ranks != static_cast<std::size_t>(spec.rank)) continue;
    if (at % per_rank == 0) batches.emplace_back();
    batches.back().push_back(order[at]);
  }
  return batches;
}

template <typename Check>
void for_all_small_specs(Check check) {
  for (std::int64_t samples = 0; samples <= 13; ++samples)
    for (std::int64_t batch_size = 1; batch_size <= 6; ++batch_size)
      for (int world = 1; world <= 5; ++world)
        for (const bool split : {false, true})
          for (const bool even : {false, true})
            for (const bool drop_last : {false, true}) {
              if (split && batch_size % world != 0) continue;
              check(ShardSpec{.samples = samples,
                              .batch_size = batch_size,
                              .world = world,
                              .split = split,
                              .even = even,
                              .drop_last = drop_last});
            }
}

// Catch's assertions are slow: a hundred thousand comparisons are counted, and the first that fails is shown.
std::string describe(const ShardSpec& s) {
  std::ostringstream out;
  out << s.samples << " samples from " << s.start << " by " << s.batch_size << " on " << s.rank << "/" << s.world
      << (s.split ? " split" : "") << (s.even ? " even" : "") << (s.drop_last ? " drop_last" : "");
  return out.str();
}

}  // namespace

TEST_CASE("every small plan equals the one computed by lists") {
  std::string first_wrong;
  int plans = 0;
  for_all_small_specs([&](ShardSpec spec) {
    for (spec.rank = 0; spec.rank < spec.world; ++spec.rank, ++plans) {
      if (planned(spec) != naive(spec) && first_wrong.empty()) first_wrong = describe(spec);
    }
  });
  CHECK(first_wrong == "");
  CHECK(plans > 5000);
}

TEST_CASE("all ranks together see every sample, once when not evened out, all equally often in steps when evened out") {
  std::string first_wrong;
  for_all_small_specs([&](ShardSpec spec) {
    std::multiset<std::int64_t> seen;
    std::set<std::size_t> steps;
    for (spec.rank = 0; spec.rank < spec.world; ++spec.rank) {
      const auto batches = planned(spec);
      steps.insert(batches.size());
      for (const auto& batch : batches) seen.insert(batch.begin(), batch.end());
    }
    const std::set<std::int64_t> different(seen.begin(), seen.end());
    const auto total =
        BatchShard({.samples = spec.samples, .batch_size = spec.batch_size, .world = spec.world, .split = spec.split})
            .total_batch_size();
    const std::int64_t expected = spec.drop_last ? spec.samples / total * total : spec.samples;
    const bool once = seen.size() == different.size();
    const bool right = static_cast<std::int64_t>(different.size()) == expected &&
                       (once || (spec.even && !spec.drop_last)) &&
                       (steps.size() == 1 || (!spec.even && !spec.drop_last));
    if (!right && first_wrong.empty()) first_wrong = describe(spec);
  });
  CHECK(first_wrong == "");
}

TEST_CASE("a plan from the middle continues where any number of ranks stopped") {
  std::string first_wrong;
  for_all_small_specs([&](ShardSpec spec) {
    const auto whole = planned(spec);
    const BatchShard shard(spec);
    for (std::int64_t done = 0; done <= shard.size(); ++done) {
      ShardSpec rest = spec;
      rest.start = shard.consumed(done);
      if (planned(rest) != Batches(whole.begin() + done, whole.end()) && first_wrong.empty())
        first_wrong = describe(rest);
      rest.world = 3;
      rest.split = rest.even = rest.drop_last = false;
      std::vector<std::int64_t> seen;
      for (rest.rank = 0; rest.rank < rest.world; ++rest.rank) {
        for (const auto& batch : planned(rest)) seen.insert(seen.end(), batch.begin(), batch.end());
      }
      std::sort(seen.begin(), seen.end());
      std::vector<std::int64_t> left(static_cast<std::size_t>(spec.samples - rest.start));
      std::iota(left.begin(), left.end(), rest.start);
      if (seen != left && first_wrong.empty()) first_wrong = describe(rest);
    }
  });
  CHECK(first_wrong == "");
}

TEST_CASE("the remainder is what the last step of all ranks has of its own") {
  CHECK(BatchShard({.samples = 10, .batch_size = 2, .world = 3}).remainder() == 4);
  CHECK(BatchShard({.samples = 12, .batch_size = 2, .world = 3}).remainder() == 0);
  CHECK(BatchShard({.samples = 10, .batch_size = 4, .world = 2, .split = true}).remainder() == 2);
  CHECK(BatchShard({.samples = 10, .batch_size = 2, .world = 3, .drop_last = true}).remainder() == -1);
  CHECK(BatchShard({.samples = 10, .start = 4, .batch_size = 2, .world = 2}).remainder() == 2);
}

TEST_CASE(
    "what is left for the last step can be spread over all ranks: no rank gets more than it must, none gets nothing") {
  std::string first_wrong;
  for_all_small_specs([&](ShardSpec spec) {
    spec.spread = true;
    const auto total = BatchShard(spec).total_batch_size();
    const auto left = spec.samples % total;
    const auto slice = (left + spec.world - 1) / spec.world;
    for (spec.rank = 0; spec.rank < spec.world; ++spec.rank) {
      auto full = spec;
      full.samples -= left;
      auto expected = planned(full);
      const auto begin = full.samples + spec.rank * slice;
      Batch last;
      for (auto i = begin; i < begin + slice; ++i) {
        if (spec.even || i < spec.samples) last.push_back(i % spec.samples);
      }
      if (!spec.drop_last && !last.empty()) expected.push_back(last);
      const BatchShard shard(spec);
      const bool is_short = !expected.empty() && left > 0 && !spec.drop_last;
      const auto is_new = std::clamp<std::int64_t>(spec.samples - begin, 0, slice);
      const bool counts = !is_short || shard.new_samples(spec.samples / total, spec.rank) == is_new;
      if ((planned(spec) != expected || !counts) && first_wrong.empty()) first_wrong = describe(spec);
    }
  });
  CHECK(first_wrong == "");
}

TEST_CASE("an order of unknown length is distributed without end, and like any other once its length is known") {
  const BatchShard shard({.samples = data::endless, .start = 8, .batch_size = 2, .rank = 1, .world = 2});
  CHECK(shard.is_endless());
  CHECK(shard.size() > 1'000'000'000'000);
  CHECK(shard.batch(1)[1] == 15);
  CHECK(shard.remainder() == 0);
  CHECK(shard.consumed(3) == 20);
  CHECK(shard.rank_at(13) == 0);
  CHECK(shard.rank_at(14) == 1);
  CHECK(shard.of(13).size() == 2);
  CHECK(shard.of(13).remainder() == 1);
}

TEST_CASE("plans need no memory, however long the order is") {
  const std::int64_t samples = 100'000'000'007;
  const BatchShard shard({.samples = samples, .batch_size = 32, .rank = 1023, .world = 1024});
  CHECK(shard.size() == 3'051'758);
  CHECK(shard.batch(3'051'000)[31] == 3'051'000LL * 32 * 1024 + 1023 * 32 + 31);
  const auto last = shard.batch(shard.size() - 1);
  CHECK(last[last.size() - 1] == shard.size() * 32 * 1024 - 1 - samples);
}

TEST_CASE("invalid batch sizes are refused") {
  CHECK_THROWS_WITH(BatchShard({.samples = 4, .batch_size = 0}), ContainsSubstring("batch_size is 0"));
  CHECK_THROWS_WITH(BatchShard({.samples = 4, .batch_size = -2}), ContainsSubstring("batch_size is -2"));
  CHECK_THROWS_WITH(BatchShard({.samples = 4, .batch_size = 3, .world = 2, .split = true}),
                    ContainsSubstring("A batch_size of 3 cannot be split over 2 ranks"));
}

TEST_CASE("a rank that acts as several virtual ranks takes their batches in turn") {
  for (std::int64_t samples = 0; samples <= 29; ++samples) {
    for (const int world : {1, 2, 3}) {
      for (const int parts : {1, 2, 4}) {
        for (const bool drop_last : {false, true}) {
          for (int rank = 0; rank < world; ++rank) {
            const ShardSpec spec{.samples = samples,
                                 .batch_size = 2,
                                 .rank = rank,
                                 .world = world,
                                 .parts = parts,
                                 .drop_last = drop_last};
            const auto ours = planned(spec);
            Batches expected;
            const auto steps =
                planned({.samples = samples, .batch_size = 2, .world = world * parts, .drop_last = drop_last});
            for (std::size_t step = 0; step < steps.size(); ++step) {
              for (int virtual_rank = rank * parts; virtual_rank < (rank + 1) * parts; ++virtual_rank) {
                expected.push_back(planned({.samples = samples,
                                            .batch_size = 2,
                                            .rank = virtual_rank,
                                            .world = world * parts,
                                            .drop_last = drop_last})[step]);
              }
            }
            CHECK(ours == expected);
            const BatchShard shard(spec);
            for (std::int64_t i = 0; i < shard.size(); ++i) CHECK(shard.virtual_rank(i) / parts == rank);
            CHECK(shard.consumed(shard.size()) ==
                  (drop_last ? samples / (2 * world * parts) * 2 * world * parts : samples));
            if (parts > 1 && shard.size() > 0) CHECK(shard.consumed(1) == 0);
          }
        }
      }
    }
  }
}
