#include <hortator/data.hpp>
#include <hortator/error.hpp>
#include <ranges>
#include <thread>

#include "data/loader/loader_core.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"
#include "support/written.hpp"

using namespace hortator;
using namespace hortator::data_test;

static_assert(std::input_iterator<DataLoader<at::Tensor>::Iterator>);
static_assert(std::ranges::input_range<DataLoader<at::Tensor>>);
static_assert(std::copyable<DataLoader<at::Tensor>>);

namespace {
const int prefetches[] = {0, 1, 4};
}

TEST_CASE("an unprepared loader reads the data set in order, the last batch short") {
  for (const int prefetch : prefetches) {
    auto loader = data_loader(Numbers{7}, {.batch_size = 3, .prefetch = prefetch});
    CHECK(loader.size() == 3);
    CHECK(loader.dataset_size() == 7);
    CHECK(loader.batch_size() == 3);
    CHECK(loader.total_batch_size() == 3);
    CHECK_FALSE(loader.is_bound());
    CHECK(read(loader) == Batches{{0, 1, 2}, {3, 4, 5}, {6}});
    CHECK(read(loader) == Batches{{0, 1, 2}, {3, 4, 5}, {6}});
    CHECK(loader.epoch() == 2);
  }
  auto dropping = data_loader(Numbers{7}, {.batch_size = 3, .drop_last = true});
  CHECK(read(dropping) == Batches{{0, 1, 2}, {3, 4, 5}});
}

TEST_CASE("shuffled epochs differ, hold every sample, and are the same on any number of ranks") {
  auto alone = data_loader(Numbers{24}, {.batch_size = 24, .shuffle = true});
  const auto first = read(alone).at(0);
  const auto second = read(alone).at(0);
  CHECK(first != second);
  CHECK(sorted({first}) == counted(24));
  CHECK(sorted({second}) == counted(24));
  for (const int world : {2, 3, 4}) {
    Batch distributed(24);
    for (int rank = 0; rank < world; ++rank) {
      const auto batches = read(bound(24, {.batch_size = 2, .shuffle = true}, {.rank = rank, .world = world}));
      for (std::size_t step = 0; step < batches.size(); ++step) {
        const auto at = (step * static_cast<std::size_t>(world) + static_cast<std::size_t>(rank)) * 2;
        std::copy(batches[step].begin(), batches[step].end(), distributed.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    CHECK(distributed == first);
  }
}

TEST_CASE("the order depends on the seed: the loader's own before the Accelerator's") {
  const auto order = [](std::optional<std::uint64_t> own, std::uint64_t bound_seed) {
    return read(bound(50, {.batch_size = 50, .shuffle = true, .seed = own}, {.seed = bound_seed}));
  };
  CHECK(order({}, 1) != order({}, 2));
  CHECK(order({}, 1) == order(1, 7));
}

TEST_CASE("ranks get as many batches when evened out, and size() is right also when they do not") {
  for (int rank = 0; rank < 3; ++rank) {
    const auto even = bound(7, {.batch_size = 2}, {.rank = rank, .world = 3});
    CHECK(even.size() == 2);
    CHECK(even.total_batch_size() == 6);
    CHECK(read(even).size() == 2);
    const auto split =
        bound(7, {.batch_size = 3}, {.rank = rank, .world = 3, .split_batches = true, .even_batches = false});
    CHECK(split.total_batch_size() == 3);
    CHECK(split.size() == (rank == 0 ? 3 : 2));
    CHECK(static_cast<std::int64_t>(read(split).size()) == split.size());
  }
}

TEST_CASE("the samples that loops have taken are those of all ranks, each once an epoch") {
  const auto taken = [](const auto& loop) {
    const auto before = data::samples_taken();
    loop();
    return data::samples_taken() - before;
  };
  auto alone = data_loader(Numbers{7}, {.batch_size = 3});
  CHECK(taken([&] { read(alone); }) == 7);
  CHECK(taken([&] { read(alone), read(alone); }) == 14);
  for (int rank = 0; rank < 3; ++rank) {
    const auto even = bound(7, {.batch_size = 2}, {.rank = rank, .world = 3});
    CHECK(taken([&] { read(even); }) == 7);
  }
}

TEST_CASE("end_of_dataloader is true in the body at the last batch only, and epoch counts after it") {
  for (const int prefetch : prefetches) {
    auto loader = data_loader(Numbers{5}, {.batch_size = 2, .prefetch = prefetch});
    CHECK_FALSE(loader.iterating());
    for (const std::int64_t pass : {0, 1}) {
      std::vector<bool> ends;
      for ([[maybe_unused]] auto& batch : loader) {
        ends.push_back(loader.end_of_dataloader());
        CHECK(loader.iterating());
        CHECK(loader.epoch() == pass);
        CHECK(loader.position() == std::min<std::int64_t>(2 * static_cast<std::int64_t>(ends.size()), 5));
        CHECK(loader.remainder() == 1);
      }
      CHECK(ends == std::vector<bool>{false, false, true});
      CHECK(loader.epoch() == pass + 1);
      CHECK_FALSE(loader.iterating());
    }
  }
}

TEST_CASE("a break ends the pass: the next loop repeats the epoch") {
  for (const int prefetch : prefetches) {
    Watched dataset{1000};
    auto loader = data_loader(dataset, {.batch_size = 2, .shuffle = true, .prefetch = prefetch});
    const auto begun = read(loader, 3);
    CHECK_FALSE(loader.iterating());
    CHECK_FALSE(loader.end_of_dataloader());
    CHECK(loader.epoch() == 0);
    CHECK(loader.position() == 6);
    CHECK(*dataset.reads <= 2 * (3 + prefetch));
    CHECK(read(loader, 3) == begun);
  }
}

TEST_CASE("copies are the same loader") {
  auto loader = data_loader(Numbers{4}, {});
  auto copy = loader;
  read(copy);
  CHECK(loader.epoch() == 1);
  LoaderBase base = loader;
  base.bind({.rank = 1, .world = 2});
  CHECK(read(loader) == Batches{{1}, {3}});
}

TEST_CASE("loops over two loaders nest") {
  auto outer = data_loader(Numbers{3}, {});
  auto inner = data_loader(Numbers{2}, {});
  int bodies = 0;
  for ([[maybe_unused]] auto& a : outer) {
    for ([[maybe_unused]] auto& b : inner) {
      CHECK(inner.started() >= outer.started());
      ++bodies;
    }
    CHECK(outer.iterating());
    CHECK_FALSE(inner.iterating());
  }
  CHECK(bodies == 6);
  CHECK(outer.epoch() == 1);
  CHECK(inner.epoch() == 3);
}

TEST_CASE("a loop inside a loop over the same loader takes over its pass, and the outer loop throws") {
  auto loader = data_loader(Numbers{3}, {});
  const auto nested = [&] {
    for ([[maybe_unused]] auto& outer : loader) CHECK(read(loader).size() == 3);
  };
  CHECK_THROWS_WITH(nested(), ContainsSubstring("is no longer valid"));
  CHECK(loader.epoch() == 1);
}

TEST_CASE("a pass that was taken over cannot go on, and its end leaves the new one alone") {
  auto loader = data_loader(Numbers{5}, {});
  auto older = std::make_unique<DataLoader<at::Tensor>::Iterator>(loader.begin());
  auto newer = loader.begin();
  CHECK_THROWS_WITH(++*older, ContainsSubstring("is no longer valid"));
  older.reset();
  CHECK(loader.iterating());
  ++newer;
  CHECK(values(*newer) == Batch{1});
}

TEST_CASE("only one thread at a time reads the data set, also when passes follow each other closely") {
  struct Lonely {
    std::shared_ptr<std::atomic<int>> inside = std::make_shared<std::atomic<int>>(0);
    std::int64_t size() const { return 1000; }
    std::int64_t get(std::int64_t i) const {
      if (++*inside > 1) throw std::logic_error("two readers");
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      --*inside;
      return i;
    }
  };
  auto loader = data_loader(Lonely{}, {.prefetch = 8});
  auto batch = loader.begin();
  for (int pass = 0; pass < 20; ++pass) CHECK_NOTHROW(batch = loader.begin());
}

TEST_CASE("an exception of the data set comes out of the loop with the sample named") {
  for (const int prefetch : prefetches) {
    auto loader = data_loader(Watched{8, 5}, {.batch_size = 2, .prefetch = prefetch});
    Batches before;
    try {
      for (auto& batch : loader) before.push_back(values(batch));
      FAIL("the loop ended");
    } catch (const Error& error) {
      CHECK_THAT(error.what(), ContainsSubstring("sample 5 of the data set could not be read: the disk is gone"));
      CHECK_THROWS_AS(std::rethrow_if_nested(error), std::out_of_range);
    }
    CHECK(before == Batches{{0, 1}, {2, 3}});
    CHECK_FALSE(loader.iterating());
    CHECK(loader.position() == 4);
    CHECK(loader.epoch() == 0);
    CHECK(read(loader, 2) == before);
  }
}

TEST_CASE("advancing after a failure throws again instead of waiting") {
  auto loader = data_loader(Watched{4, 1}, {});
  auto batch = loader.begin();
  CHECK_THROWS_WITH(++batch, ContainsSubstring("sample 1"));
  CHECK_THROWS_WITH(++batch, ContainsSubstring("is no longer valid"));
}

TEST_CASE("empty data sets have no batches and still count their passes") {
  for (const bool drop_last : {false, true}) {
    auto loader = data_loader(Numbers{0}, {.shuffle = true, .drop_last = drop_last});
    CHECK(loader.size() == 0);
    CHECK(read(loader).empty());
    CHECK(loader.epoch() == 1);
  }
  CHECK(read(bound(0, {.batch_size = 2}, {.rank = 1, .world = 2})).empty());
  CHECK(read(bound(3, {.batch_size = 4, .drop_last = true}, {})).empty());
}

TEST_CASE("rank 0 warns once of epochs that have no batches, and why") {
  const auto warning = [](auto loader) {
    return test::written_to(STDERR_FILENO, [&] {
      read(loader);
      read(loader);
    });
  };
  CHECK_THAT(warning(data_loader(Numbers{0}, {})), ContainsSubstring("The data set of a data loader is empty"));
  const LoaderOptions dropping{.batch_size = 4, .drop_last = true};
  const auto text = warning(bound(7, dropping, {.rank = 0, .world = 2}));
  CHECK_THAT(text, ContainsSubstring("takes 8 samples, drop_last leaves out") && ContainsSubstring("there are only 7"));
  CHECK(text.find("has no batches") == text.rfind("has no batches"));
  CHECK_THAT(warning(data_loader(std::vector<at::Tensor>{}, {})), ContainsSubstring("The stream of a data loader"));
  CHECK(warning(bound(7, dropping, {.rank = 1, .world = 2})).empty());
  CHECK(warning(bound(8, dropping, {.rank = 0, .world = 2})).empty());
  auto at_end = bound(8, {.batch_size = 8}, {});
  read(at_end, 1);
  auto resumed = bound(8, {.batch_size = 8}, {});
  resumed.load(at_end.state());
  CHECK(test::written_to(STDERR_FILENO, [&] { read(resumed); }).empty());
}

TEST_CASE("invalid options and bindings are refused") {
  CHECK_THROWS_WITH(data_loader(Numbers{3}, {.batch_size = 0}), ContainsSubstring("batch_size is 0"));
  CHECK_THROWS_WITH(data_loader(Numbers{3}, {.batch_size = -1}), ContainsSubstring("batch_size is -1"));
  CHECK_THROWS_WITH(data_loader(Numbers{3}, {.prefetch = -1}), ContainsSubstring("prefetch is -1"));
  auto loader = data_loader(Numbers{3}, {.batch_size = 3});
  CHECK_THROWS_WITH(loader.bind({.world = 2, .split_batches = true}),
                    ContainsSubstring("cannot be split over 2 ranks"));
  CHECK_THROWS_AS(loader.bind({.rank = 2, .world = 2}), UsageError);
  CHECK_FALSE(loader.is_bound());
  CHECK(read(loader) == Batches{{0, 1, 2}});
  for ([[maybe_unused]] auto& batch : loader) {
    CHECK_THROWS_AS(loader.bind({}), UsageError);
    CHECK_THROWS_AS(loader.set_epoch(3), UsageError);
  }
}

TEST_CASE("a pass asks first whether the Accelerator is still there") {
  auto loader = data_loader(Numbers{3}, {});
  loader.bind({.check_alive = [] { throw Error({.what = "it is gone"}); }});
  CHECK_THROWS_WITH(read(loader), ContainsSubstring("it is gone"));
  CHECK_FALSE(loader.iterating());
}

TEST_CASE("batches go to the bound device, unless placement is off; on the same device nothing is copied") {
  const auto dataset = std::make_shared<std::vector<at::Tensor>>();
  struct Held {
    std::shared_ptr<std::vector<at::Tensor>> tensors;
    std::int64_t size() const { return static_cast<std::int64_t>(tensors->size()); }
    at::Tensor get_batch(std::span<const std::int64_t> samples) const {
      return tensors->at(static_cast<std::size_t>(samples[0]));
    }
  };
  dataset->push_back(at::tensor({1.0F, 2.0F}));
  auto loader = data_loader(Held{dataset}, {});
  for (auto& batch : loader) CHECK(batch.is_same(dataset->at(0)));
  loader.bind({.device = c10::Device(c10::kMeta)});
  for (auto& batch : loader) CHECK(batch.device().is_meta());
  loader.bind({.device = c10::Device(c10::kMeta), .device_placement = false});
  for (auto& batch : loader) CHECK(batch.is_same(dataset->at(0)));
}

TEST_CASE("a loader can go while its pass is running") {
  auto loader = std::make_unique<DataLoader<at::Tensor>>(data_loader(Numbers{100}, {.prefetch = 4}));
  auto batch = loader->begin();
  loader.reset();
  CHECK(values(*batch) == Batch{0});
  ++batch;
  CHECK(values(*batch) == Batch{1});
}
