#include <hortator/data.hpp>
#include <hortator/error.hpp>

#include "streams.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

Batches without_first(Batches batches, std::size_t count) {
  batches.erase(batches.begin(), batches.begin() + static_cast<std::ptrdiff_t>(std::min(count, batches.size())));
  return batches;
}

DataLoader<at::Tensor> shuffled(LoaderBinding binding) {
  return bound(23, {.batch_size = 2, .shuffle = true, .seed = 3}, std::move(binding));
}

}  // namespace

TEST_CASE("a loader without its first batches is the same loader: order, flags, remainder and length stay right") {
  for (const int world : {1, 2, 3}) {
    const auto all = read(shuffled({.world = world}));
    for (std::size_t skip = 0; skip <= all.size() + 1; ++skip) {
      auto loader = shuffled({.world = world});
      const auto skipped = skip_first_batches(loader, static_cast<std::int64_t>(skip));
      CHECK(skipped.size() == static_cast<std::int64_t>(without_first(all, skip).size()));
      CHECK(loader.size() == static_cast<std::int64_t>(all.size()));
      CHECK(read(skipped) == without_first(all, skip));
      CHECK(loader.epoch() == 1);
      if (skip < all.size()) CHECK(skipped.remainder() == 23 % (2 * world));
    }
  }
}

TEST_CASE("skipping twice adds up, and other handles are left alone") {
  auto loader = shuffled({});
  const auto all = read(loader);
  loader.set_epoch(0);
  const auto twice = skip_first_batches(skip_first_batches(loader, 2), 3);
  CHECK(read(twice) == without_first(all, 5));
  loader.set_epoch(0);
  CHECK(read(loader) == all);
  CHECK_THROWS_WITH(skip_first_batches(loader, -1), ContainsSubstring("asked to skip -1 batches"));
}

TEST_CASE("streams are read over") {
  for (const int prefetch : {0, 2}) {
    Counting stream{9};
    auto loader = data_loader(stream, {.batch_size = 2, .prefetch = prefetch});
    CHECK(read(skip_first_batches(loader, 3)) == Batches{{6, 7}, {8}});
    CHECK(read(skip_first_batches(loader, 5)).empty());
    CHECK(read(skip_first_batches(loader, 50)).empty());
    CHECK(loader.epoch() == 3);
    loader.bind({.rank = 1, .world = 2});
    CHECK(read(skip_first_batches(loader, 1)) == Batches{{6, 7}, {1, 2}});
  }
}

TEST_CASE("what is saved in a pass that began later is the position in the epoch") {
  auto loader = shuffled({.world = 2});
  const auto all = read(loader);
  loader.set_epoch(0);
  CHECK(read(skip_first_batches(loader, 2), 1) == Batches{all[2]});
  CHECK(loader.position() == 12);
  auto resumed = shuffled({.world = 2});
  resumed.load(loader.state());
  CHECK(read(resumed) == without_first(all, 3));
}

TEST_CASE("batches that an earlier run has had are skipped once") {
  auto stopped = shuffled({});
  const auto all = read(stopped);
  stopped.set_epoch(0);
  read(stopped, 4);
  for (const std::int64_t skip : {0, 3, 4, 6}) {
    auto resumed = shuffled({});
    resumed.load(stopped.state());
    CHECK(read(skip_first_batches(resumed, skip)) ==
          without_first(all, static_cast<std::size_t>(std::max<std::int64_t>(skip, 4))));
  }
}

TEST_CASE("with several virtual ranks per rank the positions stay right") {
  const LoaderBinding binding{.rank = 1, .world = 2, .parts = 2};
  const auto all = read(shuffled(binding));
  for (std::size_t skip = 0; skip <= all.size(); ++skip) {
    auto loader = shuffled(binding);
    const auto skipped = skip_first_batches(loader, static_cast<std::int64_t>(skip));
    std::size_t seen = skip;
    for (auto& batch : skipped) {
      CHECK(values(batch) == all[seen]);
      CHECK(loader.begins_step() == (seen % 2 == 0));
      CHECK(loader.ends_step() == (seen % 2 == 1));
      ++seen;
    }
    CHECK(seen == all.size());
  }
}
