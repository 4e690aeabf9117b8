#include "data/loader/prefetcher.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <vector>

#include "support/catch.hpp"

using namespace hortator;
using data::Ahead;
using data::Prefetcher;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<void> number(std::int64_t step) { return std::make_shared<std::int64_t>(step); }

std::int64_t value(const std::shared_ptr<void>& batch) { return *static_cast<std::int64_t*>(batch.get()); }

void wait_until(const std::atomic<std::int64_t>& counter, std::int64_t wanted) {
  for (int i = 0; i < 2000 && counter < wanted; ++i) std::this_thread::sleep_for(1ms);
}

}  // namespace

TEST_CASE("batches come in order, whichever worker makes them") {
  for (const int ahead : {0, 1, 3, 100}) {
    for (const int workers : {1, 2, 5}) {
      const auto uneven = [](std::int64_t step) {
        std::this_thread::sleep_for(std::chrono::microseconds(step * 7919 % 50));
        return number(step);
      };
      Prefetcher reader(uneven, 50, {.batches = ahead, .workers = workers});
      std::vector<std::int64_t> seen;
      for (int i = 0; i < 50; ++i) seen.push_back(value(reader.next()));
      for (std::int64_t i = 0; i < 50; ++i) CHECK(seen[static_cast<std::size_t>(i)] == i);
    }
  }
}

TEST_CASE("the threads read ahead as far as they may and no further") {
  for (const Ahead& ahead : {Ahead{3, 1}, Ahead{3, 2}, Ahead{1, 3}}) {
    std::atomic<std::int64_t> made = 0;
    const auto count = [&](std::int64_t step) { return ++made, number(step); };
    Prefetcher reader(count, 50, ahead);
    wait_until(made, 3);
    std::this_thread::sleep_for(20ms);
    CHECK(made == 3);
    reader.next();
    wait_until(made, 4);
    std::this_thread::sleep_for(20ms);
    CHECK(made == 4);
  }
}

TEST_CASE("several workers make batches at the same time, one makes them one by one") {
  for (const int workers : {1, 4}) {
    std::atomic<int> inside = 0;
    std::atomic<int> max_readers = 0;
    std::mutex mutex;
    std::set<std::thread::id> threads;
    const auto watch = [&](std::int64_t step) {
      max_readers = std::max(max_readers.load(), ++inside);
      std::this_thread::sleep_for(2ms);
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      --inside;
      return number(step);
    };
    Prefetcher reader(watch, 40, {.batches = 8, .workers = workers});
    for (int i = 0; i < 40; ++i) {
      reader.next();
      std::this_thread::sleep_for(100us);  // the work to read ahead beside
    }
    CHECK(threads.size() == static_cast<std::size_t>(workers));
    CHECK((max_readers > 1) == (workers > 1));
    CHECK(threads.count(std::this_thread::get_id()) == 0);
  }
}

TEST_CASE("a caller with no work between two batches makes them itself, and is relieved when it has") {
  std::atomic<int> inside = 0;
  std::atomic<int> max_readers = 0;
  std::vector<std::thread::id> makers;
  const auto note = [&](std::int64_t step) {
    max_readers = std::max(max_readers.load(), ++inside);
    std::this_thread::sleep_for(1ms);
    makers.push_back(std::this_thread::get_id());
    --inside;
    return number(step);
  };
  const auto here = [&](std::int64_t begin, std::int64_t end) {
    return std::count(makers.begin() + begin, makers.begin() + end, std::this_thread::get_id());
  };
  for (const auto pause : {data::WorkerPause::when_hurried, data::WorkerPause::from_start, data::WorkerPause::never}) {
    makers.clear();
    Prefetcher reader(note, 60, {.batches = 2, .workers = 1, .pause = pause});
    std::vector<std::int64_t> seen;
    for (int i = 0; i < 60; ++i) {
      seen.push_back(value(reader.next()));
      if (i >= 29) std::this_thread::sleep_for(200us);
    }
    for (std::int64_t i = 0; i < 60; ++i) CHECK(seen[static_cast<std::size_t>(i)] == i);
    CHECK((here(0, 29) > 10) == (pause != data::WorkerPause::never));
    CHECK(here(31, 60) == 0);
    CHECK(!reader.is_hurried());
    CHECK(max_readers == 1);
  }
}

TEST_CASE("with nothing ahead nothing is read before it is asked, in the caller's thread") {
  std::vector<std::thread::id> threads;
  Prefetcher reader([&](std::int64_t step) { return threads.push_back(std::this_thread::get_id()), number(step); }, 50,
                    {.batches = 0});
  CHECK(threads.empty());
  reader.next();
  CHECK(threads == std::vector<std::thread::id>{std::this_thread::get_id()});
}

TEST_CASE("an exception waits for its turn, and nothing is begun after it") {
  for (const Ahead& ahead : {Ahead{0, 1}, Ahead{1, 1}, Ahead{5, 1}, Ahead{5, 3}}) {
    std::atomic<std::int64_t> asked = 0;
    Prefetcher reader(
        [&](std::int64_t step) {
          ++asked;
          if (step == 2) throw std::runtime_error("no more paper");
          std::this_thread::sleep_for(5ms);
          return number(step);
        },
        50, ahead);
    CHECK(value(reader.next()) == 0);
    CHECK(value(reader.next()) == 1);
    CHECK_THROWS_WITH(reader.next(), ContainsSubstring("no more paper"));
    std::this_thread::sleep_for(20ms);
    // The other workers end what they have begun.
    CHECK(asked >= 3);
    CHECK(asked < 3 + ahead.workers);
  }
}

TEST_CASE("of several exceptions the one of the earliest batch comes out") {
  std::atomic<int> waiting = 0;
  Prefetcher reader(
      [&](std::int64_t step) -> std::shared_ptr<void> {
        for (++waiting; waiting < 3;) std::this_thread::yield();
        if (step == 0) std::this_thread::sleep_for(10ms);
        throw std::runtime_error("number " + std::to_string(step));
      },
      50, {.batches = 3, .workers = 3});
  CHECK_THROWS_WITH(reader.next(), "number 0");
}

TEST_CASE("readers can go at any time, with threads waiting or at work") {
  for (int round = 0; round < 200; ++round) {
    Prefetcher reader(number, 1'000'000, {.batches = 1 + round % 3, .workers = 1 + round % 4});
    for (int i = 0; i < round % 5; ++i) reader.next();
  }
  SUCCEED();
}

TEST_CASE("a reader that goes begins nothing more") {
  std::atomic<std::int64_t> begun = 0;
  {
    Prefetcher reader(
        [&](std::int64_t step) {
          ++begun;
          std::this_thread::sleep_for(30ms);
          return number(step);
        },
        1000, {.batches = 100, .workers = 2});
    wait_until(begun, 2);
  }
  CHECK(begun == 2);
}
