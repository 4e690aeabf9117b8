#include "runtime/watchdog/stall.hpp"

#include "support/catch.hpp"
#include "unit/runtime/watchdog/stalls.hpp"

using namespace hortator;
using namespace hortator::stalls;

TEST_CASE("a missing rank is named, with its stack and the ranks that wait") {
  const std::vector slots = {waiting(0, 5, 130), waiting(1, 5, 120), busy(2, 4), waiting(3, 5, 10)};
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(stall->kind == StallKind::absent);
  CHECK(ranks_of(stall->culprits) == std::vector{2});
  CHECK(text(slots) ==
        "does not come to barrier #5 (4 ranks), for which ranks 0-1, 3 have waited for 2 min 10 s: it has been outside "
        "of collectives for 12.0 s");
  CHECK(describe(*stall, {}, "").culprit->rank == 2);
}

TEST_CASE("a rank that has gone past the collective is not missing") {
  const std::vector slots = {waiting(0, 5, 130), waiting(1, 6, 100), busy(2, 4)};
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(ranks_of(stall->culprits) == std::vector{2});
}

TEST_CASE("in a chain of waits the rank at its end is named") {
  // 0 waits for 1 in the world, 1 waits for 2 among the tensors.
  auto middle = busy(1, 4);
  middle.standings.push_back({.communicator = tensors, .entered = 9});
  middle.wait = {.name = "all_reduce", .communicator = tensors, .sequence = 9, .size = 2, .seconds = 3};
  auto last = busy(2, 5);
  last.standings.push_back({.communicator = tensors, .entered = 8});
  const std::vector slots = {waiting(0, 5, 130, "barrier", 3), middle, last};
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(stall->kind == StallKind::absent);
  CHECK(ranks_of(stall->culprits) == std::vector{2});
  CHECK(stall->sides.size() == 2);
  CHECK_THAT(text(slots), ContainsSubstring("for which ranks 0-1 have waited"));
}

TEST_CASE("ranks in different collectives: both sides are named, the line is the smaller side's") {
  auto odd = busy(3, 4);
  odd.standings.push_back({.communicator = tensors, .entered = 2});
  odd.wait = {.name = "all_reduce", .bytes = 16, .communicator = tensors, .sequence = 2, .size = 4, .seconds = 120};
  std::vector<RankRecord> slots = {odd};
  for (int rank = 0; rank < 3; ++rank) {
    auto slot = waiting(rank, 5, 130);
    slot.standings.push_back({.communicator = tensors, .entered = 1});
    slots.push_back(slot);
  }
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(stall->kind == StallKind::apart);
  CHECK(ranks_of(stall->culprits) == std::vector{3});
  CHECK(text(slots) ==
        "is in all_reduce #2 (16 B, 4 ranks) while ranks 0-2 are in barrier #5 (4 ranks): they have waited for each "
        "other for 2 min 10 s");
}

TEST_CASE("ranks that call one collective differently are reported as soon as both have waited for a while") {
  const auto slots_of = [](double seconds) {
    return std::vector{waiting(0, 5, 99, "agreement"), waiting(1, 5, seconds, "barrier"), busy(2, 4), busy(3, 5)};
  };
  const auto slots = slots_of(5);
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(stall->kind == StallKind::apart);
  CHECK(ranks_of(stall->culprits) == std::vector{1});
  CHECK_THAT(text(slots), ContainsSubstring("is in barrier #5 (4 ranks) while rank 0 is in agreement #5 (4 ranks)"));
  CHECK_FALSE(find_stall(slots_of(4.9), patience));
}

TEST_CASE("a rank that still waits in what all others have left is reported as soon as they wait for it") {
  // The root of a broadcast leaves it at once: rank 0 is in the next collective, and rank 1 in a barrier.
  const auto slots_of = [](double seconds) {
    std::vector slots = {waiting(0, 6, 99, "agreement", 2), waiting(1, 5, seconds, "barrier", 2)};
    slots[1].has_one_thread = true;
    return slots;
  };
  const auto slots = slots_of(5);
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(stall->kind == StallKind::apart);
  CHECK(ranks_of(stall->culprits) == std::vector{1});
  CHECK_FALSE(find_stall(slots_of(4.9), patience));  // its message may be on the way
  auto large = slots_of(50);
  large[1].wait->bytes = std::uint64_t{1} << 30;
  CHECK_FALSE(find_stall(large, patience));
  // Ranks that are at work, or still in it, may send what it waits for.
  CHECK_FALSE(find_stall(std::vector{busy(0, 6), waiting(1, 5, 50, "broadcast", 2)}, patience));
  CHECK_FALSE(find_stall(std::vector{waiting(0, 6, 99, "agreement", 3), waiting(1, 5, 50, "broadcast", 3), busy(2, 5)},
                         patience));
}

TEST_CASE("waits for unknown ranks are distinguished from waits for known ones") {
  CHECK_FALSE(somebody_waits_for_unknown(std::vector{busy(0, 4)}));
  CHECK_FALSE(somebody_waits_for_unknown(std::vector{waiting(0, 5, 1, "barrier", 2), busy(1, 4)}));
  CHECK(somebody_waits_for_unknown(std::vector{waiting(0, 5, 1, "barrier", 3), busy(1, 4)}));
}

TEST_CASE("with two against two ranks the side without rank 0 is the culprit") {
  std::vector slots = {waiting(0, 5, 130), waiting(1, 5, 130), waiting(2, 5, 130, "gather"),
                       waiting(3, 5, 130, "gather")};
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(ranks_of(stall->culprits) == std::vector{2, 3});
  CHECK(text(slots) ==
        "is in gather #5 (4 ranks), with rank 3, while ranks 0-1 are in barrier #5 (4 ranks): they have waited for "
        "each other for 2 min 10 s");
}

TEST_CASE("the same call with other sizes is another call") {
  auto small = waiting(1, 5, 130, "all_reduce", 2);
  small.wait->bytes = 8;
  const std::vector slots = {waiting(0, 5, 130, "all_reduce", 2), small};
  CHECK(find_stall(slots, patience)->kind == StallKind::apart);
}

TEST_CASE("all ranks are in it: the network is to blame; if not all are known, that is said") {
  const std::vector all = {waiting(0, 5, 130, "barrier", 2), waiting(1, 5, 130, "barrier", 2)};
  CHECK(find_stall(all, patience)->kind == StallKind::inside);
  CHECK_THAT(text(all), ContainsSubstring("all ranks have come to it"));
  const std::vector some = {waiting(0, 5, 130), waiting(1, 5, 130)};
  CHECK(find_stall(some, patience)->kind == StallKind::unknown);
  CHECK(text(some, {1, 2}) ==
        "ranks 0-1 have been in barrier #5 (4 ranks) for 2 min 10 s, and nothing is known of 2 other ranks of it; no "
        "word from nodes 1-2 (counted from 0)");
}

TEST_CASE("the last status of a stopped rank is outdated: it is not waiting") {
  const std::vector slots = {waiting(0, 5, 130, "barrier", 2),
                             in_state(waiting(1, 5, 3, "barrier", 2), RankLife::stopped)};
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(stall->kind == StallKind::absent);
  CHECK(ranks_of(stall->culprits) == std::vector{1});
}

TEST_CASE("a rank that was stopped right after a communicator was made is blamed instead of an unknown one") {
  auto silenced = in_state(busy(1, 4), RankLife::stopped);
  silenced.standings.clear();
  std::vector slots = {waiting(0, 5, 130, "barrier", 2), silenced};
  auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(ranks_of(stall->culprits) == std::vector{1});
  // All ranks of the communicator are known: it is not one of them.
  slots.push_back(busy(2, 4));
  stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(ranks_of(stall->culprits) == std::vector{2});
}
