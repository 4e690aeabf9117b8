#include <hortator/data.hpp>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

struct Setting {
  std::int64_t samples;
  LoaderOptions options;
  LoaderBinding binding;
};

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const std::int64_t samples : {1, 7, 12})
    for (const bool shuffle : {false, true})
      for (const bool drop_last : {false, true})
        for (const int world : {1, 2, 3})
          for (const bool even : {false, true})
            for (const int prefetch : {0, 1}) {
              all.push_back({samples,
                             {.batch_size = 2, .shuffle = shuffle, .drop_last = drop_last, .prefetch = prefetch},
                             {.rank = world - 1, .world = world, .even_batches = even, .seed = 5}});
            }
  return all;
}

Batches epochs(const DataLoader<at::Tensor>& loader, std::int64_t until) {
  Batches all;
  while (loader.epoch() < until) {
    for (auto& batch : read(loader)) all.push_back(batch);
    all.push_back({-1});  // an epoch's end
  }
  return all;
}

DataLoader<at::Tensor> make(const Setting& setting) { return bound(setting.samples, setting.options, setting.binding); }

}  // namespace

TEST_CASE("a loader resumed after any batch continues as if never stopped, over epochs") {
  for (const auto& setting : settings()) {
    INFO(setting.samples << " samples, shuffle " << setting.options.shuffle << ", world " << setting.binding.world);
    const auto never_stopped = epochs(make(setting), 3);
    const auto per_epoch = make(setting).size();
    std::vector<std::string> differences;
    for (std::int64_t stop_epoch = 0; stop_epoch < 2; ++stop_epoch) {
      for (std::int64_t stop = 0; stop <= per_epoch; ++stop) {
        auto stopped = make(setting);
        auto seen = epochs(stopped, stop_epoch);
        for (auto& batch : read(stopped, static_cast<std::size_t>(stop))) seen.push_back(batch);
        auto resumed = bound(setting.samples, setting.options, {.seed = 99});  // the saved seed is the run's
        resumed.load(stopped.state());
        auto binding = setting.binding;
        binding.seed = 77;
        resumed.bind(binding);
        for (auto& batch : epochs(resumed, 3)) seen.push_back(batch);
        if (seen != never_stopped)
          differences.push_back("epoch " + std::to_string(stop_epoch) + " batch " + std::to_string(stop));
      }
    }
    CHECK(differences.empty());
  }
}

TEST_CASE(
    "another number of ranks takes up the rest of the epoch: every sample once, in the order of the run that never "
    "stopped") {
  const LoaderOptions options{.batch_size = 2, .shuffle = true};
  const auto order = read(bound(23, {.batch_size = 23, .shuffle = true}, {})).at(0);
  for (const int before : {1, 2, 3, 4}) {
    for (const int after : {1, 2, 3, 4}) {
      auto first = bound(23, options, {.world = before});
      read(first, 2);
      const auto position = first.position();
      CHECK(position == 4 * before);
      Batch rest(static_cast<std::size_t>(23 - position));
      for (int rank = 0; rank < after; ++rank) {
        auto resumed = bound(23, options, {.rank = rank, .world = after, .even_batches = false});
        resumed.load(first.state());
        std::size_t step = 0;
        for (auto& batch : read(resumed)) {
          const auto at = 2 * (step++ * static_cast<std::size_t>(after) + static_cast<std::size_t>(rank));
          std::copy(batch.begin(), batch.end(), rest.begin() + static_cast<std::ptrdiff_t>(at));
        }
        CHECK(resumed.epoch() == 1);
      }
      CHECK(rest == Batch(order.begin() + position, order.end()));
    }
  }
}

TEST_CASE("the remainder of a resumed pass counts what was left") {
  auto first = bound(23, {.batch_size = 2}, {.world = 2});
  read(first, 2);
  auto resumed = bound(23, {.batch_size = 2}, {.world = 3});
  resumed.load(first.state());
  for ([[maybe_unused]] auto& batch : resumed) CHECK(resumed.remainder() == (23 - 8) % 6);
}

TEST_CASE("a resumed pass knows how many of its batches an earlier run has had, also on another number of ranks") {
  auto loader = bound(23, {.batch_size = 2}, {.world = 2});
  CHECK(loader.first_step() == 0);
  read(loader, 2);
  CHECK(loader.first_step() == 0);  // the next pass begins the epoch again
  for (const int world : {1, 2, 3, 4}) {
    auto resumed = bound(23, {.batch_size = 2}, {.world = world});
    resumed.load(loader.state());
    const auto first = resumed.first_step();
    CHECK(first >= 8 / (2 * world));
    CHECK(first + static_cast<std::int64_t>(read(resumed).size()) == resumed.size());
    CHECK(resumed.first_step() == 0);
  }
}

TEST_CASE("a state saved after an epoch's end is the next epoch's beginning") {
  auto loader = data_loader(Numbers{5}, {.batch_size = 2, .shuffle = true});
  read(loader);
  CHECK(loader.state().get<std::int64_t>("epoch") == 1);
  CHECK(loader.state().get<std::int64_t>("position") == 0);
  auto resumed = data_loader(Numbers{5}, {.batch_size = 2, .shuffle = true});
  resumed.load(loader.state());
  CHECK(read(resumed) == read(loader));
}

TEST_CASE("a state that was loaded and not used is saved again as it was") {
  auto loader = data_loader(Numbers{9}, {.batch_size = 2});
  read(loader, 2);
  auto resumed = data_loader(Numbers{9}, {.batch_size = 2});
  resumed.load(loader.state());
  for (const auto* name : {"seed", "epoch", "position"}) {
    CHECK(resumed.state().get<std::int64_t>(name) == loader.state().get<std::int64_t>(name));
  }
  CHECK(read(resumed).front() == Batch{4, 5});
}

TEST_CASE("set_epoch to the loaded epoch keeps the position, to another begins it") {
  auto loader = data_loader(Numbers{9}, {.batch_size = 2});
  read(loader);
  read(loader, 2);
  auto resumed = data_loader(Numbers{9}, {.batch_size = 2});
  resumed.load(loader.state());
  resumed.set_epoch(1);
  CHECK(read(resumed, 1).front() == Batch{4, 5});
  resumed.load(loader.state());
  resumed.set_epoch(2);
  CHECK(resumed.position() == 0);
  CHECK(read(resumed, 1).front() == Batch{0, 1});
}

TEST_CASE("the order follows the epoch that was set") {
  auto loader = data_loader(Numbers{30}, {.batch_size = 30, .shuffle = true});
  read(loader);
  const auto second = read(loader);
  loader.set_epoch(1);
  CHECK(read(loader) == second);
}

TEST_CASE("a state loaded inside a loop ends that loop's pass") {
  auto loader = data_loader(Numbers{6}, {});
  const auto state = loader.state();
  const auto loop = [&] {
    for ([[maybe_unused]] auto& batch : loader) loader.load(state);
  };
  CHECK_THROWS_WITH(loop(), ContainsSubstring("is no longer valid"));
  CHECK(read(loader).size() == 6);
}

TEST_CASE("a position within other data is refused, an epoch's beginning is not") {
  auto loader = data_loader(Numbers{9}, {.batch_size = 2});
  const auto beginning = loader.state();
  read(loader, 2);
  auto other = data_loader(Numbers{10}, {.batch_size = 2});
  CHECK_THROWS_WITH(other.load(loader.state()),
                    ContainsSubstring("4 of 9 samples in sequential order, but the data set has 10"));
  auto shuffled = data_loader(Numbers{9}, {.batch_size = 2, .shuffle = true});
  CHECK_THROWS_WITH(shuffled.load(loader.state()), ContainsSubstring("9 in counter order"));
  CHECK_NOTHROW(other.load(beginning));
  CHECK(read(other).size() == 5);
}
