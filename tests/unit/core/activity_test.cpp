#include "core/activity/activity.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/catch.hpp"

using namespace hortator::activity;

namespace {

std::vector<Operation> operations_now() {
  std::vector<Operation> all;
  for (const auto& thread : view().threads) {
    if (thread.inside) all.push_back(thread.operation);
  }
  return all;
}

std::optional<std::uint64_t> entered(std::uint64_t communicator) {
  for (const auto& standing : view().progress) {
    if (standing.communicator == communicator) return standing.entered;
  }
  return {};
}

/// The time of a call of `work` in the fastest of many short series: other processes interrupt long ones.
template <typename Work>
double shortest_nanoseconds(const Work& work) {
  using namespace std::chrono;
  constexpr int rounds = 1000;
  duration<double, std::nano> shortest = hours(1);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const auto begin = steady_clock::now();
    for (int i = 0; i < rounds; ++i) work();
    shortest = std::min<duration<double, std::nano>>(shortest, (steady_clock::now() - begin) / double(rounds));
  }
  return shortest.count();
}

}  // namespace

TEST_CASE("a collective is visible from its beginning to its end, and counted") {
  const Membership membership(41, 40, 3);
  CHECK(operations_now().empty());
  {
    const Collective here(membership, "all_reduce", 128);
    const auto now = operations_now();
    REQUIRE(now.size() == 1);
    CHECK(now[0].name.text() == "all_reduce");
    CHECK(now[0].bytes == 128);
    CHECK(now[0].communicator == 41);
    CHECK(now[0].family == 40);
    CHECK(now[0].sequence == 1);
    CHECK(now[0].size == 3);
  }
  CHECK(operations_now().empty());
  { const Collective here(membership, "barrier"); }
  CHECK(entered(41) == 2);
}

TEST_CASE("each entry into a collective is a new visit, also for the same operation") {
  const Membership membership(42, 42, 2);
  const auto operation = membership.begin("all_reduce", 8);
  const auto visit = [&] {
    const Collective here(operation);
    const auto threads = view().threads;
    return std::ranges::find_if(threads, &View::Current::inside)->visit;
  };
  CHECK(visit() != visit());
  CHECK(entered(42) == 1);
}

TEST_CASE("nested collectives are only counted") {
  const Membership outer(43, 43, 2);
  const Membership inner(44, 43, 2);
  const Collective one(outer, "outer");
  {
    const Collective two(inner, "inner");
    REQUIRE(operations_now().size() == 1);
    CHECK(operations_now()[0].name.text() == "outer");
  }
  REQUIRE(operations_now().size() == 1);
  CHECK(operations_now()[0].name.text() == "outer");
  CHECK(entered(44) == 1);
}

TEST_CASE("an exception ends the collective and the phase") {
  const Membership membership(45, 45, 2);
  try {
    const PhaseScope phase(Phase::checkpoint);
    const Collective here(membership, "barrier");
    CHECK(view().phase == Phase::checkpoint);
    throw std::runtime_error("no");
  } catch (const std::runtime_error&) {
  }
  CHECK(operations_now().empty());
  CHECK(view().phase == Phase::running);
}

TEST_CASE("each thread has its own record, and surplus threads do no harm") {
  const Membership membership(46, 46, 2);
  const Collective mine(membership, "mine");
  std::thread([&] {
    const Collective other(membership, "theirs");
    CHECK(operations_now().size() == 2);
  }).join();
  CHECK(operations_now().size() == 1);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> many;
    for (int i = 0; i < 20; ++i) {
      many.emplace_back([] {
        const Membership own(1000, 1000, 2);
        const Collective here(own, "one of many");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      });
    }
    for (auto& thread : many) thread.join();
    CHECK(operations_now().size() == 1);
  }
}

TEST_CASE("a released communicator stays recorded while there is room") {
  { const Membership gone(47, 47, 2); }
  CHECK(entered(47) == 0);
  for (std::uint64_t i = 0; i < 200; ++i) const Membership other(5000 + i, 1, 2);
  CHECK_FALSE(entered(47));
  std::vector<Membership> many;
  for (std::uint64_t i = 0; i < 200; ++i) many.emplace_back(6000 + i, 1, 2);
  { const Collective unseen(many.back(), "barrier"); }
  CHECK(many.back().begin("barrier", 0).sequence == 2);
}

TEST_CASE("derived identities are equal on all ranks and differ from all others") {
  const auto ids = [](std::uint64_t id) {
    const Membership parent(id, id, 2);
    std::vector<std::uint64_t> all;
    for (int i = 0; i < 3; ++i) {
      for (const int part : {0, 1}) all.push_back(parent.derive(part, 1).begin("x", 0).communicator);
    }
    return all;
  };
  auto all = ids(48);
  CHECK(all == ids(48));
  const auto other = ids(49);
  all.insert(all.end(), other.begin(), other.end());
  std::ranges::sort(all);
  CHECK(std::ranges::adjacent_find(all) == all.end());
  CHECK(Membership(50, 51, 2).derive(0, 1).family() == 51);
}

TEST_CASE("long names are cut") {
  CHECK(Name("").text().empty());
  CHECK(Name("12345678901234567890123456789").text() == "12345678901234567890123");
}

// Readers check whole operations while a thread changes them as fast as it can.
TEST_CASE("a reader never sees a mixture of two operations") {
  std::atomic<bool> ends = false;
  const Membership membership(52, 52, 2);
  std::thread writer([&] {
    while (!ends) {
      { const Collective one(Operation{.name = "one", .bytes = 1, .communicator = 1, .family = 1, .sequence = 1}); }
      { const Collective two(Operation{.name = "two", .bytes = 2, .communicator = 2, .family = 2, .sequence = 2}); }
    }
  });
  for (int i = 0; i < 20000; ++i) {
    for (const auto& [visit, operation, inside] : view().threads) {
      if (operation.bytes != 1 && operation.bytes != 2) continue;
      const bool whole = operation.name.text() == (operation.bytes == 1 ? "one" : "two") &&
                         operation.sequence == operation.bytes && operation.family == operation.bytes;
      if (!whole) FAIL("torn: " << operation.name.text() << " " << operation.bytes << " " << operation.sequence);
    }
  }
  ends = true;
  writer.join();
}

TEST_CASE("a collective costs nanoseconds and two looks at the clock: no lock, no allocation") {
  const Membership membership(53, 53, 2);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr double bound = 10'000;
#else
  constexpr double bound = 60;  // measured: 20 to 36; a look at the clock takes 20 to 45, by machine
#endif
  const auto of_collective = shortest_nanoseconds([&] { const Collective here(membership, "all_reduce", 8); });
  const auto of_clock = shortest_nanoseconds([] {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
  });
  INFO("it costs " << of_collective << " ns, and a look at the clock " << of_clock << " ns");
  CHECK(of_collective - 2 * of_clock < bound);
}

TEST_CASE("a device's operation is visible, and counts as a wait from its turn on") {
  const Membership membership(47, 46, 2);
  const auto operation = membership.begin("all_reduce", 8);
  CHECK_FALSE(on_device());
  publish_device(operation, false);
  CHECK(on_device()->operation.sequence == 1);
  CHECK_FALSE(on_device()->is_its_turn);
  CHECK_FALSE(view_with_device().threads.back().inside);
  const auto before = view_with_device().threads.back().visit;
  publish_device(operation, true);
  CHECK(on_device()->is_its_turn);
  CHECK(view_with_device().threads.back().inside);
  CHECK(operations_now().empty());  // no thread is in it
  CHECK(view_with_device().threads.back().visit != before);
  publish_device_idle();
  CHECK_FALSE(on_device());
  CHECK_FALSE(view_with_device().threads.back().inside);
}

TEST_CASE("a thread knows its outermost collective") {
  const Membership membership(48, 48, 2);
  CHECK_FALSE(current());
  {
    const Collective outer(membership, "outer");
    const Collective inner(membership, "inner");
    CHECK(current().name.text() == "outer");
  }
  CHECK_FALSE(current());
}
