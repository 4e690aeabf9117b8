// Collectives that run on devices.
#include "runtime/watchdog/stall.hpp"

#include "support/catch.hpp"
#include "unit/runtime/watchdog/stalls.hpp"

using namespace hortator;
using namespace hortator::stalls;

TEST_CASE("devices wait for a rank whose process has not begun the operation: it is missing") {
  auto late = busy(2, 4);
  late.standings.push_back({.communicator = tensors, .entered = 8});
  const std::vector slots = {with_device(0, 9, 9, true), with_device(1, 12, 9, true), late};
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(stall->kind == StallKind::absent);
  CHECK(ranks_of(stall->culprits) == std::vector{2});
  CHECK_THAT(text(slots),
             ContainsSubstring("does not come to all_reduce #9 (16 B, 3 ranks), for which ranks 0-1 have") &&
                 ContainsSubstring("it has been outside of collectives"));
}

TEST_CASE(
    "devices wait for one that is still at work that it was given before: that is distinguished from a missing rank") {
  const std::vector slots = {with_device(0, 12, 9, true), with_device(1, 12, 9, true), with_device(2, 12, 9, false)};
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(stall->kind == StallKind::absent);
  CHECK(ranks_of(stall->culprits) == std::vector{2});
  CHECK_THAT(text(slots), ContainsSubstring("its process has begun all_reduce #9, but its GPU is still at work"));
  // An operation before that one, which the others' devices have ended.
  const std::vector behind = {with_device(0, 12, 9, true), with_device(1, 12, 9, true), with_device(2, 12, 8, false)};
  CHECK(ranks_of(find_stall(behind, patience)->culprits) == std::vector{2});
}

TEST_CASE("an operation that runs on all devices and does not end is blamed on the links") {
  const std::vector all = {with_device(0, 9, 9, true), with_device(1, 9, 9, true), with_device(2, 9, 9, true)};
  const auto stall = find_stall(all, patience);
  REQUIRE(stall);
  CHECK(stall->kind == StallKind::inside);
  CHECK_THAT(text(all), ContainsSubstring("it runs on the GPUs of all ranks, yet it does not end"));
}

TEST_CASE("devices that compute for long are not reported, and a host's wait for such a rank is") {
  CHECK_FALSE(find_stall(std::vector{with_device(0, 9, 9, false), with_device(1, 9, 9, false)}, patience));
  CHECK_FALSE(find_stall(std::vector{with_device(0, 9, 9, true, 99), with_device(1, 9, 9, false)}, patience));
  // 0 waits in a barrier for 1, whose device waits for 2's.
  const std::vector chain = {waiting(0, 5, 130, "barrier", 3), with_device(1, 9, 9, true, 20),
                             with_device(2, 9, 9, false)};
  const auto stall = find_stall(chain, patience);
  REQUIRE(stall);
  CHECK(ranks_of(stall->culprits) == std::vector{2});
}
