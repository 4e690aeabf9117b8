#include <hortator/data.hpp>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

const data::BatchList sizes = {{0, 1}, {2}, {3, 4, 5}, {6}, {9, 8, 7}};

DataLoader<at::Tensor> varying(const LoaderBinding& binding, const LoaderOptions& options = {}) {
  auto loader = data_loader(Numbers{10}, sizes, options);
  loader.bind(binding);
  return loader;
}

}  // namespace

TEST_CASE("given batches are handed out unchanged") {
  auto loader = data_loader(Numbers{10}, sizes);
  CHECK(loader.size() == 5);
  CHECK(loader.dataset_size() == 10);
  CHECK(loader.total_batch_size() == 0);
  CHECK(read(loader) == sizes);
  CHECK(read(loader) == sizes);
}

TEST_CASE("ranks get whole batches in turn, and repeat the first ones at the end") {
  CHECK(read(varying({.rank = 0, .world = 2})) == Batches{{0, 1}, {3, 4, 5}, {9, 8, 7}});
  CHECK(read(varying({.rank = 1, .world = 2})) == Batches{{2}, {6}, {0, 1}});
  CHECK(read(varying({.rank = 1, .world = 2, .even_batches = false})) == Batches{{2}, {6}});
  CHECK(read(varying({.rank = 0, .world = 2}, {.drop_last = true})) == Batches{{0, 1}, {3, 4, 5}});
}

TEST_CASE("how many rows each rank has, and how many are new, is known on all") {
  auto loader = varying({.rank = 0, .world = 2});
  std::vector<std::int64_t> rows;
  std::vector<bool> even;
  for ([[maybe_unused]] auto& batch : loader) {
    rows.insert(rows.end(), {loader.new_samples(0), loader.new_samples(1), loader.new_samples()});
    even.push_back(loader.is_even_step());
    CHECK(loader.ranks_in_step() == 2);
  }
  CHECK(rows == std::vector<std::int64_t>{2, 1, 3, 3, 1, 4, 3, 0, 3});
  CHECK(even == std::vector<bool>{false, false, false});
  CHECK(loader.remainder() == 3);

  auto uneven = varying({.rank = 0, .world = 2, .even_batches = false});
  std::vector<int> ranks;
  for ([[maybe_unused]] auto& batch : uneven) ranks.push_back(uneven.ranks_in_step());
  CHECK(ranks == std::vector<int>{2, 2, 1});
}

TEST_CASE("batches may be shuffled, and may be others in each epoch") {
  auto shuffled = data_loader(Numbers{10}, sizes, {.shuffle = true});
  const auto first = read(shuffled);
  const auto second = read(shuffled);
  CHECK(first != second);
  CHECK(sorted(first) == counted(10));
  CHECK(sorted(second) == counted(10));

  auto changing = data_loader(
      Numbers{10}, [](std::int64_t epoch) { return data::BatchList(static_cast<std::size_t>(1 + epoch), {epoch}); });
  CHECK(changing.size() == 1);
  CHECK(read(changing) == Batches{{0}});
  CHECK(changing.size() == 2);
  CHECK(read(changing) == Batches{{1}, {1}});
}

TEST_CASE("a position counts batches: any number of ranks continues with the next one") {
  auto first = varying({.world = 2}, {.shuffle = true});
  const auto order = read(varying({}, {.shuffle = true}));
  read(first, 1);
  CHECK(first.position() == 2);
  for (const int world : {1, 2, 3}) {
    Batches rest(3);
    for (int rank = 0; rank < world; ++rank) {
      auto resumed = varying({.rank = rank, .world = world, .even_batches = false}, {.shuffle = true});
      resumed.load(first.state());
      auto at = static_cast<std::size_t>(rank);
      for (auto& batch : read(resumed)) {
        rest.at(at) = batch;
        at += static_cast<std::size_t>(world);
      }
    }
    CHECK(rest == Batches(order.begin() + 2, order.end()));
  }
}

TEST_CASE("invalid batches are refused") {
  CHECK_THROWS_WITH(data_loader(Numbers{3}, data::BatchList{{0}, {}}),
                    ContainsSubstring("Batch 1 of the given batches is empty"));
  CHECK_THROWS_WITH(data_loader(Numbers{3}, data::BatchList{{0, 3}}),
                    ContainsSubstring("Batch 0 of the given batches has sample 3, but the data set has 3"));
  CHECK_THROWS_WITH(data_loader(Numbers{3}, data::BatchList{{0}}, {.batch_size = 2}),
                    ContainsSubstring("batch_size is 2, but the batches are given"));
  auto loader = data_loader(Numbers{3}, data::BatchList{{0}});
  CHECK_THROWS_WITH(loader.bind({.world = 2, .split_batches = true}), ContainsSubstring("cannot be split"));
  CHECK(data_loader(Numbers{3}, data::BatchList{}).size() == 0);
}
