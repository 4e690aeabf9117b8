#include "data/prefetcher.hpp"

#include <atomic>
#include <chrono>
#include <vector>

#include "support/catch.hpp"

using namespace hortator;
using data::Prefetcher;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<void> number(std::int64_t step) { return std::make_shared<std::int64_t>(step); }

std::int64_t value(const std::shared_ptr<void>& batch) { return *static_cast<std::int64_t*>(batch.get()); }

void wait_until(const std::atomic<std::int64_t>& counter, std::int64_t wanted) {
  for (int i = 0; i < 2000 && counter < wanted; ++i) std::this_thread::sleep_for(1ms);
}

}  // namespace

TEST_CASE("batches come in order, whoever makes them") {
  for (const int depth : {0, 1, 3, 100}) {
    Prefetcher reader(number, 50, depth);
    std::vector<std::int64_t> seen;
    for (int i = 0; i < 50; ++i) seen.push_back(value(reader.next()));
    for (std::int64_t i = 0; i < 50; ++i) CHECK(seen[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("the thread reads ahead as far as it may and no further") {
  std::atomic<std::int64_t> made = 0;
  const auto count = [&](std::int64_t step) { return ++made, number(step); };
  Prefetcher reader(count, 50, 3);
  wait_until(made, 3);
  std::this_thread::sleep_for(20ms);
  CHECK(made == 3);
  reader.next();
  wait_until(made, 4);
  std::this_thread::sleep_for(20ms);
  CHECK(made == 4);
}

TEST_CASE("depth 0 reads nothing before it is asked, in the caller's thread") {
  std::vector<std::thread::id> threads;
  Prefetcher reader([&](std::int64_t step) { return threads.push_back(std::this_thread::get_id()), number(step); }, 50,
                    0);
  CHECK(threads.empty());
  reader.next();
  CHECK(threads == std::vector<std::thread::id>{std::this_thread::get_id()});
}

TEST_CASE("an exception waits for its turn, and nothing is read after it") {
  for (const int depth : {0, 1, 5}) {
    std::atomic<std::int64_t> asked = 0;
    Prefetcher reader(
        [&](std::int64_t step) {
          ++asked;
          if (step == 2) throw std::runtime_error("no more paper");
          return number(step);
        },
        50, depth);
    CHECK(value(reader.next()) == 0);
    CHECK(value(reader.next()) == 1);
    CHECK_THROWS_WITH(reader.next(), ContainsSubstring("no more paper"));
    CHECK(asked == 3);
  }
}

TEST_CASE("readers can go at any time, with the thread waiting or at work") {
  for (int round = 0; round < 200; ++round) {
    Prefetcher reader(number, 1'000'000, 1 + round % 3);
    for (int i = 0; i < round % 5; ++i) reader.next();
  }
  SUCCEED();
}
