#include <hortator/data.hpp>
#include <hortator/error.hpp>
#include <ranges>
#include <thread>

#include "streams.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

const int stream_prefetches[] = {0, 1, 4};

// The samples of all ranks in the order of the stream: step by step, rank by rank.
Batch distributed(std::int64_t count, const LoaderOptions& options, LoaderBinding binding) {
  std::vector<Batches> of_ranks;
  for (binding.rank = 0; binding.rank < binding.world; ++binding.rank) {
    of_ranks.push_back(read(bound_stream(Counting{count}, options, binding)));
    CHECK(of_ranks.back().size() == of_ranks.front().size());
  }
  Batch all;
  for (std::size_t step = 0; step < of_ranks[0].size(); ++step) {
    for (const auto& batches : of_ranks) all.insert(all.end(), batches[step].begin(), batches[step].end());
  }
  return all;
}

}  // namespace

TEST_CASE("an unprepared stream is read in order, the last batch short, from the start in each pass") {
  for (const int prefetch : stream_prefetches) {
    auto loader = data_loader(Counting{7}, {.batch_size = 3, .prefetch = prefetch});
    CHECK(loader.is_stream());
    CHECK_FALSE(loader.has_size());
    for (const std::int64_t pass : {0, 1}) {
      std::vector<bool> ends;
      Batches batches;
      for (auto& batch : loader) {
        batches.push_back(values(batch));
        ends.push_back(loader.end_of_dataloader());
        CHECK(loader.new_samples() == (ends.size() < 3 ? 3 : 1));
        CHECK(loader.position() == (ends.size() < 3 ? 3 * static_cast<std::int64_t>(ends.size()) : 7));
      }
      CHECK(batches == Batches{{0, 1, 2}, {3, 4, 5}, {6}});
      CHECK(ends == std::vector<bool>{false, false, true});
      CHECK(loader.remainder() == 1);
      CHECK(loader.epoch() == pass + 1);
    }
  }
}

TEST_CASE("ranges are streams, and streams of examples are joined part by part") {
  CHECK(read(data_loader(std::vector<std::int64_t>{4, 5, 6}, {.batch_size = 2})) == Batches{{4, 5}, {6}});
  CHECK(data_loader(std::vector<int>{4, 5, 6}, {.batch_size = 2}).size() == 2);
  auto lazy = data_loader(std::views::iota(0, 5), {.batch_size = 4});
  CHECK(read(lazy) == Batches{{0, 1, 2, 3}, {4}});
  CHECK(read(lazy).size() == 2);

  struct Pairs {
    int at = 0;
    std::optional<Example<at::Tensor, int>> next() {
      if (at == 2) return {};
      ++at;
      return Example<at::Tensor, int>(at::full({3}, at), at);
    }
  };
  auto pairs = data_loader(Pairs{}, {.batch_size = 2});
  for (auto& batch : pairs) {
    CHECK(batch.data.sizes() == at::IntArrayRef({2, 3}));
    CHECK(values(batch.target) == Batch{1, 2});
  }
}

TEST_CASE("a function of the user's joins a stream's samples") {
  auto loader = data_loader(Counting{5}, {.batch_size = 2}, [](const std::vector<std::int64_t>& samples) {
    return static_cast<std::int64_t>(samples.size());
  });
  Batch sizes;
  for (auto& batch : loader) sizes.push_back(batch);
  CHECK(sizes == Batch{2, 2, 1});
}

TEST_CASE("ranks get a stream's samples in turn, as many each, the last ones filled up from the first") {
  for (const int world : {2, 3, 4}) {
    for (std::int64_t count = 1; count <= 14; ++count) {
      for (const bool split : {false, true}) {
        const std::int64_t batch_size = split ? 2 * world : 2;
        const auto all = distributed(count, {.batch_size = batch_size}, {.world = world, .split_batches = split});
        CHECK(all.size() % static_cast<std::size_t>(2 * world) == 0);
        for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == static_cast<std::int64_t>(i) % count);
        CHECK(distributed(count, {.batch_size = batch_size, .drop_last = true},
                          {.world = world, .split_batches = split}) == counted(count / (2 * world) * (2 * world)));
      }
    }
  }
  CHECK(distributed(0, {.batch_size = 2}, {.world = 3}).empty());
}

TEST_CASE("the last batch is known as the last, also where what comes after it is left out") {
  for (const bool drop_last : {false, true}) {
    for (std::int64_t count = 1; count <= 9; ++count) {
      const LoaderOptions options{.batch_size = 2, .drop_last = drop_last};
      auto loader = bound_stream(Counting{count}, options, {.rank = 1, .world = 2});
      std::vector<bool> ends;
      for ([[maybe_unused]] auto& batch : loader) ends.push_back(loader.end_of_dataloader() && loader.in_last_step());
      CHECK(ends.size() == static_cast<std::size_t>(drop_last ? count / 4 : (count + 3) / 4));
      for (std::size_t i = 0; i < ends.size(); ++i) CHECK(ends[i] == (i + 1 == ends.size()));
    }
  }
}

TEST_CASE("uneven batches are not for streams: ranks would learn too late that they have none") {
  CHECK(distributed(5, {.batch_size = 2}, {.world = 2, .even_batches = false}) == Batch{0, 1, 2, 3, 4, 0, 1, 2});
}

TEST_CASE("a stream that reports its size has the right length on all ranks; otherwise size() throws") {
  auto sized = data_loader(Sized(7), {.batch_size = 2});
  CHECK(sized.has_size());
  CHECK(sized.size() == 4);
  CHECK(sized.dataset_size() == 7);
  sized.bind({.rank = 1, .world = 3});
  CHECK(sized.size() == 2);
  CHECK(read(sized).size() == 2);
  CHECK_THROWS_WITH(data_loader(Counting{7}).size(), ContainsSubstring("The number of samples of this loader"));
  CHECK_THROWS_AS(data_loader(Counting{7}).dataset_size(), UsageError);
}

TEST_CASE("a stream that reports a wrong size is an error once that is known") {
  CHECK_THROWS_WITH(read(data_loader(Sized(7, 9), {.batch_size = 2})),
                    ContainsSubstring("ended after 7 of the 9 samples"));
  CHECK_THROWS_WITH(read(data_loader(Sized(7, 5), {.batch_size = 2})),
                    ContainsSubstring("continues after the 5 samples"));
}

TEST_CASE("a stream learns the epoch; one that cannot begin again says so in the second pass") {
  auto placed = data_loader(Placed{3}, {.batch_size = 3});
  CHECK(read(placed) == Batches{{0, 1, 2}});
  CHECK(read(placed) == Batches{{1000, 1001, 1002}});
  struct Once {
    std::int64_t at = 0;
    std::optional<std::int64_t> next() { return at < 3 ? std::optional(at++) : std::nullopt; }
  };
  auto once = data_loader(Once{}, {.batch_size = 2});
  CHECK(read(once) == Batches{{0, 1}, {2}});
  CHECK_THROWS_WITH(read(once), ContainsSubstring("cannot begin again"));
  CHECK_THROWS_WITH(data_loader(Once{}, {.shuffle = true}), ContainsSubstring("cannot be shuffled"));
}

TEST_CASE("a stream's exception comes out of the loop with the sample named, at its batch") {
  for (const int prefetch : stream_prefetches) {
    auto loader = data_loader(Counting{9, 5}, {.batch_size = 2, .prefetch = prefetch});
    Batches before;
    const auto loop = [&] {
      for (auto& batch : loader) before.push_back(values(batch));
    };
    CHECK_THROWS_WITH(loop(), ContainsSubstring("sample 5 of the data set could not be read: the line is dead"));
    CHECK(before == Batches{{0, 1}, {2, 3}});
    CHECK_FALSE(loader.iterating());
    CHECK(read(loader, 1) == Batches{{0, 1}});
  }
}

TEST_CASE("a stream is read no further ahead than asked, by one sample") {
  Counting stream{1000};
  auto loader = data_loader(stream, {.batch_size = 2, .prefetch = 0});
  CHECK(read(loader, 3).size() == 3);
  CHECK(*stream.reads == 7);
  auto ahead = data_loader(stream, {.batch_size = 2, .prefetch = 2});
  *stream.reads = 0;
  CHECK(read(ahead, 3).size() == 3);
  CHECK(*stream.reads <= 2 * (3 + 3) + 1);
}

TEST_CASE("a rank keeps only its own samples of a stream, and the first ones") {
  struct Heavy {
    std::shared_ptr<std::atomic<int>> alive = std::make_shared<std::atomic<int>>(0);
    int at = 0;
    std::optional<std::shared_ptr<int>> next() {
      if (at == 4000) return {};
      ++*alive;
      return std::shared_ptr<int>(new int(at++), [alive = alive](const int* sample) {
        --*alive;
        delete sample;
      });
    }
  };
  Heavy stream;
  auto loader = data_loader(stream, {.batch_size = 2, .prefetch = 0},
                            [](const std::vector<std::shared_ptr<int>>& samples) { return samples.size(); });
  loader.bind({.rank = 3, .world = 10});
  int max_alive = 0;
  for ([[maybe_unused]] auto& batch : loader) max_alive = std::max(max_alive, stream.alive->load());
  CHECK(max_alive <= 20 + 2 + 1);
}

TEST_CASE("loops over streams break off, begin again and nest") {
  for (const int prefetch : stream_prefetches) {
    auto outer = data_loader(Counting{5}, {.batch_size = 2, .prefetch = prefetch});
    auto inner = data_loader(Counting{3}, {.batch_size = 2, .prefetch = prefetch});
    CHECK(read(outer, 2) == Batches{{0, 1}, {2, 3}});
    int bodies = 0;
    for ([[maybe_unused]] auto& a : outer) {
      for ([[maybe_unused]] auto& b : inner) ++bodies;
    }
    CHECK(bodies == 6);
    CHECK(outer.epoch() == 1);
    CHECK(inner.epoch() == 3);
  }
}
