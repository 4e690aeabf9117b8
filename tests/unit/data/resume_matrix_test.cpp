// Stops after a batch on W ranks and resumes on W': all ranks together get the samples of an uninterrupted run, in its
// order. The loaders of all ranks are in this one process.
#include <hortator/data.hpp>
#include <hortator/datasets/shuffle_buffer.hpp>
#include <random>

#include "streams.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

using Loader = DataLoader<at::Tensor>;
using Make = std::function<Loader(const LoaderBinding&)>;

struct Kind {
  std::string name;
  Make make;
};

std::vector<Kind> kinds(std::int64_t count) {
  const LoaderOptions plain{.batch_size = 2};
  const LoaderOptions shuffled{.batch_size = 2, .shuffle = true, .seed = 5};
  const auto binder = [](auto make) {
    return [make](const LoaderBinding& binding) {
      auto loader = make();
      loader.bind(binding);
      return loader;
    };
  };
  data::BatchList batches;
  for (std::int64_t i = 0; i < count; i += 3) batches.push_back({i, std::min(i + 1, count - 1)});
  return {{"map-style", binder([=] { return data_loader(Numbers{count}, plain); })},
          {"shuffled", binder([=] { return data_loader(Numbers{count}, shuffled); })},
          {"varying", binder([=] { return data_loader(Numbers{count}, batches, {.shuffle = true, .seed = 5}); })},
          {"stream", binder([=] { return data_loader(Counting{count}, plain); })},
          {"sized stream", binder([=] { return data_loader(Sized(count), {.batch_size = 2, .prefetch = 0}); })},
          {"shuffled stream",
           binder([=] { return data_loader(ShuffleBuffer(Counting{count}, {.size = 5, .seed = 3}), plain); })},
          {"stream with a state", binder([=] { return data_loader(Placed{count}, plain); })}};
}

struct Distributed {
  std::vector<Batches> of_ranks = {};
  Batch all = {};  ///< without repetitions, in the order of steps and ranks
  StateDict state = {};
};

// All ranks' passes, up to `at_most` batches each.
Distributed distribute(const Make& make, int world, std::size_t at_most, const StateDict* state = nullptr) {
  Distributed distributed;
  std::vector<std::vector<std::int64_t>> fresh;
  for (int rank = 0; rank < world; ++rank) {
    auto loader = make({.rank = rank, .world = world});
    if (state != nullptr) loader.load(*state);
    auto& batches = distributed.of_ranks.emplace_back();
    auto& rows = fresh.emplace_back();
    if (at_most > 0) {
      for (auto& batch : loader) {
        batches.push_back(values(batch));
        rows.push_back(loader.new_samples(rank));
        if (batches.size() == at_most) break;
      }
    }
    distributed.state = loader.state();
  }
  for (std::size_t step = 0; step < distributed.of_ranks[0].size(); ++step) {
    for (std::size_t rank = 0; rank < distributed.of_ranks.size(); ++rank) {
      const auto& batch = distributed.of_ranks[rank].at(step);
      distributed.all.insert(distributed.all.end(), batch.begin(),
                             batch.begin() + static_cast<std::ptrdiff_t>(fresh[rank][step]));
    }
  }
  return distributed;
}

}  // namespace

TEST_CASE("any kind of loader, stopped after any batch, resumes on any number of ranks") {
  std::mt19937 draw(7);
  for (const std::int64_t count : {1, 5, 16, 23}) {
    for (const auto& kind : kinds(count)) {
      for (int before = 1; before <= 4; ++before) {
        const auto never_stopped = distribute(kind.make, before, 1000);
        const auto steps = never_stopped.of_ranks[0].size();
        // In the middle, after a batch: a finished epoch's state begins the next one.
        const auto stop = std::uniform_int_distribution<std::size_t>(0, steps - 1)(draw);
        const auto stopped = distribute(kind.make, before, stop);
        for (int after = 1; after <= 4; ++after) {
          const auto resumed = distribute(kind.make, after, 1000, &stopped.state);
          auto all = stopped.all;
          all.insert(all.end(), resumed.all.begin(), resumed.all.end());
          INFO(kind.name << " of " << count << ", stopped after " << stop << " batches on " << before
                         << " ranks, resumed on " << after);
          CHECK(all == never_stopped.all);
          if (before != after) continue;
          for (std::size_t rank = 0; rank < stopped.of_ranks.size(); ++rank) {
            auto batches = stopped.of_ranks[rank];
            batches.insert(batches.end(), resumed.of_ranks[rank].begin(), resumed.of_ranks[rank].end());
            CHECK(batches == never_stopped.of_ranks[rank]);
          }
        }
      }
    }
  }
}

TEST_CASE("a loader stopped after the last batch, before its loop has ended, has nothing left") {
  for (const auto& kind : kinds(16)) {
    for (const int world : {1, 2}) {
      const auto stopped = distribute(kind.make, world, distribute(kind.make, world, 1000).of_ranks[0].size());
      const auto resumed = distribute(kind.make, 2, 1000, &stopped.state);
      INFO(kind.name);
      CHECK(resumed.all.empty());
      CHECK(resumed.state.get<std::int64_t>("epoch") == 1);
    }
  }
}

TEST_CASE("a stream that says where it is is not read over, but for the first samples, which the last batch repeats") {
  const LoaderOptions options{.batch_size = 2, .prefetch = 1};
  auto stopped = bound_stream(Placed{1001}, options, {.world = 2});
  read(stopped);
  read(stopped, 200);
  Placed stream{1001};
  auto resumed = bound_stream(stream, options, {.world = 2});
  resumed.load(stopped.state());
  const auto rest = read(resumed);
  CHECK(rest.front() == Batch{1800, 1801});
  CHECK(rest.back() == Batch{2000, 1000});
  CHECK(*stream.reads == 201 + 4);
}

TEST_CASE("a stream that ends before the position that was saved is refused, and so is another size") {
  auto stopped = data_loader(Counting{20}, {.batch_size = 2});
  read(stopped, 6);
  auto shorter = data_loader(Counting{9}, {.batch_size = 2});
  shorter.load(stopped.state());
  CHECK_THROWS_WITH(read(shorter), ContainsSubstring("ended after 9 samples, before the position 12"));
  CHECK_THROWS_WITH(data_loader(Sized(20)).load(stopped.state()),
                    ContainsSubstring("12 of -1 samples in stream order"));
  CHECK_THROWS_WITH(data_loader(Numbers{20}).load(stopped.state()), ContainsSubstring("the data set has 20"));
}
