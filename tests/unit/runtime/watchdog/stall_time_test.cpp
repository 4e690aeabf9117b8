// When a stall is reported: limits and excuses.
#include "runtime/watchdog/stall.hpp"

#include "support/catch.hpp"
#include "unit/runtime/watchdog/stalls.hpp"

using namespace hortator;
using namespace hortator::stalls;
using activity::Phase;

TEST_CASE("no stall is reported where no rank waits long") {
  CHECK_FALSE(find_stall({}, patience));
  CHECK_FALSE(find_stall(std::vector{busy(0, 5), busy(1, 5)}, patience));
  CHECK_FALSE(find_stall(std::vector{waiting(0, 5, 99.9), busy(1, 4)}, patience));
  CHECK(find_stall(std::vector{waiting(0, 5, 100), busy(1, 4)}, patience));
}

TEST_CASE("where all ranks are in a collective, the time of the last one counts: its work has just begun") {
  const auto said = [](double last) {
    return find_stall(std::vector{waiting(0, 5, 130, "barrier", 2), waiting(1, 5, last, "barrier", 2)}, patience)
        .has_value();
  };
  CHECK_FALSE(said(0));
  CHECK_FALSE(said(99.9));
  CHECK(said(100));
}

TEST_CASE("ranks that wait for each other in a cycle are reported soon") {
  const std::vector two = {blocked(0, world, 5), blocked(1, tensors, 1)};
  auto stall = find_stall(two, patience);
  REQUIRE(stall);
  CHECK(stall->kind == StallKind::apart);
  CHECK(ranks_of(stall->culprits) == std::vector{1});
  CHECK_FALSE(find_stall(std::vector{blocked(0, world, 4.9), blocked(1, tensors, 4.9)}, patience));
  CHECK(find_stall(std::vector{blocked(0, world, 1), blocked(1, tensors, 1), blocked(2, others, 5)}, patience));
  // It waits for the circle from outside.
  auto beside = blocked(2, others, 5, 2);
  const std::vector chain = {blocked(0, world, 1, 2), blocked(1, tensors, 1, 2), beside};
  CHECK(find_stall(chain, patience));
}

TEST_CASE("a chain of waits that ends is not a cycle and has the usual time limit") {
  const auto said = [](const std::vector<RankRecord>& slots) { return find_stall(slots, patience).has_value(); };
  // 0 waits for 1, which is where all have come: what they do there takes long.
  auto last = blocked(2, tensors, 99);
  last.standings[0].entered = 5;
  auto first = blocked(0, world, 99);
  first.standings[1].entered = 5;
  CHECK_FALSE(said({first, blocked(1, tensors, 99), last}));
  // A third rank is at work, and may free both.
  auto third = busy(2, 4);
  third.standings.push_back({.communicator = tensors, .entered = 4});
  CHECK_FALSE(said({blocked(0, world, 99), blocked(1, tensors, 99), third}));
  // A rank of several threads, or one that waits by its device, may still come.
  for (const int rank : {0, 1}) {
    std::vector slots = {blocked(0, world, 99), blocked(1, tensors, 99)};
    slots[static_cast<std::size_t>(rank)].has_one_thread = false;
    CHECK_FALSE(said(slots));
  }
}

TEST_CASE("a wait for a dead rank is reported soon") {
  const auto said = [](const RankRecord& other, double seconds) {
    return find_stall(std::vector{waiting(0, 5, seconds, "barrier", 2), other}, patience).has_value();
  };
  CHECK_FALSE(said(in_state(busy(1, 4), RankLife::vanished), 9));
  CHECK(said(in_state(busy(1, 4), RankLife::vanished), 10));
  CHECK(said(in_state(busy(1, 4), RankLife::left), 10));
  CHECK_FALSE(said(in_state(busy(1, 4), RankLife::stopped), 99));
  CHECK(said(in_state(busy(1, 4), RankLife::stopped), 100));
  // It died in the middle; but a rank that left in order after its part may have sent what is still on its way.
  CHECK(said(in_state(busy(1, 5), RankLife::vanished), 10));
  CHECK_FALSE(said(in_state(busy(1, 5), RankLife::left), 99));
}

TEST_CASE("patient phases and debuggers excuse, death and being stopped do not") {
  const auto said = [](const RankRecord& other) {
    return find_stall(std::vector{waiting(0, 5, 1000, "barrier", 2), other}, patience).has_value();
  };
  for (const auto phase : {Phase::checkpoint, Phase::one_side_first}) {
    CHECK_FALSE(said(in_phase(busy(1, 4), phase)));
    CHECK_FALSE(said(in_state(in_phase(busy(1, 4), phase), RankLife::blocked)));
    CHECK(said(in_state(in_phase(busy(1, 4), phase), RankLife::stopped)));
    CHECK(said(in_state(in_phase(busy(1, 4), phase), RankLife::vanished)));
    // In the same phase, but in another collective: it does no work that takes long.
    CHECK(said(in_phase(waiting(1, 4, 1000, "gather", 2), phase)));
  }
  CHECK(said(in_phase(busy(1, 4), Phase::set_up)));
  CHECK_FALSE(said(in_state(busy(1, 4), RankLife::traced)));
  auto silenced = in_state(busy(1, 4), RankLife::traced);
  silenced.standings.clear();
  CHECK_FALSE(said(silenced));
  const auto traced = in_state(waiting(0, 5, 1000, "barrier", 2), RankLife::traced);
  CHECK_FALSE(find_stall(std::vector{traced, busy(1, 4)}, patience));
}

TEST_CASE("an excused stall does not hide another one") {
  auto other = busy(2, 4);
  other.standings = {{.communicator = tensors, .entered = 3}};
  other.wait = {.name = "all_reduce", .communicator = tensors, .sequence = 3, .size = 2, .seconds = 120};
  auto late = busy(3, 4);
  late.standings = {{.communicator = tensors, .entered = 2}};
  const std::vector slots = {waiting(0, 5, 1000, "barrier", 2), in_phase(busy(1, 4), Phase::checkpoint), other, late};
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(ranks_of(stall->culprits) == std::vector{3});
}

TEST_CASE("a communicator's first collective may take twice as long") {
  CHECK_FALSE(find_stall(std::vector{waiting(0, 1, 199), busy(1, 0)}, patience));
  CHECK(find_stall(std::vector{waiting(0, 1, 200), busy(1, 0)}, patience));
}
