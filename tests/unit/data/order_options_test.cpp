#include <hortator/datasets/sampler.hpp>
#include <hortator/datasets/subset.hpp>
#include <hortator/datasets/tensor_dataset.hpp>
#include <hortator/error.hpp>
#include <set>
#include <thread>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

TEST_CASE("the order is of the loader's options, and its state says which") {
  const auto named = [](const LoaderOptions& options) {
    return data_loader(Numbers{9}, options).state().get<std::string>("order");
  };
  CHECK(named({}) == "sequential");
  CHECK(named({.shuffle = true}) == "counter");
  CHECK(named({.shuffle = true, .order = ShuffleOrder::randperm}) == "randperm");
  CHECK(named({.sampler = block_sampler({.block = 4, .window = 2})}) == "block 4 window 2");
  CHECK(named({.sampler = weighted_sampler(std::vector<double>(9, 1))}) !=
        named({.sampler = weighted_sampler(std::vector<double>(9, 2))}));

  CHECK_THROWS_WITH(data_loader(Numbers{9}, {.shuffle = true, .sampler = block_sampler()}),
                    ContainsSubstring("has both a sampler and shuffle"));
  CHECK_THROWS_WITH(data_loader(Numbers{9}, {.order = ShuffleOrder::randperm}),
                    ContainsSubstring("but shuffle = false"));
}

TEST_CASE("a position in one order is not taken up in another") {
  auto loader = data_loader(Numbers{9}, {.shuffle = true, .order = ShuffleOrder::randperm});
  read(loader, 2);
  auto other = data_loader(Numbers{9}, {.shuffle = true});
  CHECK_THROWS_WITH(other.load(loader.state()),
                    ContainsSubstring("2 of 9 samples in randperm order, but the data set has 9 in counter order"));
}

TEST_CASE("weighted epochs of any size are distributed, stopped and resumed like any order") {
  const LoaderOptions options{
      .batch_size = 2, .sampler = weighted_sampler({1, 0, 5, 2}, {.epoch_size = 23}), .seed = 6};
  const auto order = read(data_loader(Numbers{4}, {.batch_size = 23, .sampler = options.sampler, .seed = 6})).at(0);
  for (const int world : {1, 2, 3}) {
    Batch distributed(23, -1);
    for (int rank = 0; rank < world; ++rank) {
      const LoaderBinding binding{.rank = rank, .world = world, .even_batches = false};
      auto stopped = bound(4, options, binding);
      CHECK(stopped.total_batch_size() == 2 * world);
      auto batches = read(stopped, 2);
      auto resumed = bound(4, options, binding);
      resumed.load(stopped.state());
      for (auto& batch : read(resumed)) batches.push_back(batch);
      std::size_t step = 0;
      for (const auto& batch : batches) {
        const auto at = 2 * (step++ * static_cast<std::size_t>(world) + static_cast<std::size_t>(rank));
        std::copy(batch.begin(), batch.end(), distributed.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    CHECK(distributed == order);
  }
}

TEST_CASE("a hundred billion samples are shuffled in no memory: an epoch's beginning, its end, and the next") {
  constexpr std::int64_t samples = 100'000'000'000;
  for (const auto& sampler : {std::shared_ptr<const Sampler>(), block_sampler()}) {
    auto loader =
        bound(samples, {.batch_size = 50, .shuffle = !sampler, .sampler = sampler}, {.rank = 1, .world = 2, .seed = 3});
    const auto first = sorted(read(loader, 2));
    CHECK(first.size() == 100);
    CHECK(first.front() >= 0);
    CHECK(first.back() < samples);

    auto state = loader.state();
    state.put("position", samples - 200);
    loader.load(state);
    const auto last = sorted(read(loader));
    CHECK(last.size() == 100);
    CHECK(loader.epoch() == 1);
    const auto next = sorted(read(loader, 2));
    std::set<std::int64_t> different(first.begin(), first.end());
    different.insert(last.begin(), last.end());
    CHECK(different.size() == 200);
    CHECK(next != first);
  }
}

TEST_CASE("any number of workers hands out the same batches, over epochs") {
  const auto expected = [] {
    auto loader = data_loader(Numbers{101}, {.batch_size = 4, .shuffle = true, .prefetch = 0});
    auto all = read(loader);
    for (auto& batch : read(loader)) all.push_back(batch);
    return all;
  }();
  for (const int workers : {1, 2, 5}) {
    auto loader = data_loader(Numbers{101}, {.batch_size = 4, .shuffle = true, .prefetch = 3, .workers = workers});
    auto all = read(loader);
    for (auto& batch : read(loader)) all.push_back(batch);
    CHECK(all == expected);
  }
}

TEST_CASE("with several workers an exception comes at its batch, and a break reads little more") {
  auto failing = data_loader(Watched{400, 50}, {.batch_size = 2, .prefetch = 6, .workers = 3});
  Batches before;
  const auto loop = [&] {
    for (auto& batch : failing) before.push_back(values(batch));
  };
  CHECK_THROWS_WITH(loop(), ContainsSubstring("sample 50 of the data set could not be read: the disk is gone"));
  CHECK(before.size() == 25);
  CHECK(read(failing, 3).size() == 3);

  Watched dataset{1000};
  auto loader = data_loader(dataset, {.batch_size = 2, .prefetch = 4, .workers = 3});
  read(loader, 3);
  CHECK(*dataset.reads <= 2 * (3 + 4));
}

TEST_CASE("several workers read only data sets that are const") {
  struct Cursor {
    std::int64_t reads = 0;
    std::int64_t size() const { return 8; }
    std::int64_t get(std::int64_t i) { return ++reads, i; }
  };
  CHECK(read(data_loader(Cursor{}, {.batch_size = 8})) == Batches{counted(8)});
  CHECK_THROWS_WITH(data_loader(Cursor{}, {.workers = 2}), ContainsSubstring("is not const"));
  CHECK_THROWS_WITH(data_loader(subset(Cursor{}, {1}), {.workers = 2}), ContainsSubstring("is not const"));

  int joined = 0;
  auto join = [joined](const Batch& samples) mutable { return at::tensor(samples).add(0 * ++joined); };
  CHECK(read(data_loader(Numbers{2}, {.batch_size = 2}, join)) == Batches{{0, 1}});
  CHECK_THROWS_WITH(data_loader(Numbers{2}, {.workers = 2}, join), ContainsSubstring("is not const"));

  CHECK_THROWS_WITH(data_loader(Numbers{2}, {.workers = 0}), ContainsSubstring("workers is 0"));
  CHECK_THROWS_WITH(data_loader(Numbers{2}, {.prefetch = 0, .workers = 2}), ContainsSubstring("prefetch is 0"));
}

TEST_CASE("pinned memory is for GPUs: on the CPU batches stay as they are") {
  auto loader = data_loader(Numbers{4}, {.batch_size = 2, .pin_memory = true});
  loader.bind({.non_blocking = true});
  CHECK(read(loader) == Batches{{0, 1}, {2, 3}});
}

TEST_CASE("rows of tensors in memory: one, two, or more of them") {
  const auto x = at::arange(12).view({4, 3});
  const auto y = at::arange(4) * 10;
  auto one = data_loader(tensor_dataset(x), {.batch_size = 3});
  CHECK(read(one) == Batches{{0, 1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11}});
  auto two = data_loader(tensor_dataset(x, y), {.batch_size = 2, .drop_last = true, .workers = 2});
  std::vector<Batch> targets;
  for (auto& batch : two) {
    CHECK(batch.data.sizes() == at::IntArrayRef({2, 3}));
    targets.push_back(values(batch.target));
  }
  CHECK(targets == Batches{{0, 10}, {20, 30}});
  auto three = data_loader(tensor_dataset(x, y, y + 1), {.batch_size = 4});
  for (auto& [a, b, c] : three) CHECK(values(c) == Batch{1, 11, 21, 31});
  const auto sample = tensor_dataset(x, y).get(2);
  CHECK(values(sample.data) == Batch{6, 7, 8});
  CHECK(sample.target.item<std::int64_t>() == 20);

  CHECK_THROWS_WITH(tensor_dataset(x, at::arange(5)), ContainsSubstring("have 4 and 5 rows"));
  CHECK_THROWS_WITH(tensor_dataset(at::scalar_tensor(1)), ContainsSubstring("a single number"));
}

TEST_CASE("subsets are data sets of some samples, of data sets of both kinds") {
  CHECK(read(data_loader(subset(Numbers{9}, {8, 0, 0, 5}), {.batch_size = 3})) == Batches{{8, 0, 0}, {5}});
  auto rows = data_loader(subset(tensor_dataset(at::arange(6)), {5, 3}), {.batch_size = 2, .workers = 2});
  CHECK(read(rows) == Batches{{5, 3}});
  CHECK(read(data_loader(subset(subset(Numbers{9}, {2, 4, 6}), {2, 1}), {.batch_size = 2})) == Batches{{6, 4}});
  CHECK(read(data_loader(subset(Numbers{9}, {}), {})).empty());
  CHECK_THROWS_WITH(subset(Numbers{9}, {3, 9}), ContainsSubstring("sample 9, but the data set has 9 samples"));
  CHECK_THROWS_WITH(subset(Numbers{9}, {-1}), ContainsSubstring("sample -1"));
}
