#include "runtime/watchdog/stall.hpp"

#include "runtime/watchdog/stall_report.hpp"
#include "support/catch.hpp"

using namespace hortator;
using activity::Phase;
using runtime::find_stall;
using runtime::Life;
using runtime::Patience;
using runtime::RankRecord;
using runtime::Stall;

namespace {

constexpr std::uint64_t world = 7;
constexpr std::uint64_t tensors = 8;
constexpr Patience patience = {.limit = 100, .for_the_gone = 10, .for_a_circle = 5};

// A rank that has begun the given number of collectives of the world's communicator, and is in none.
RankRecord busy(int rank, std::uint64_t entered) {
  return {.rank = rank,
          .host = "n" + std::to_string(rank / 2),
          .pid = 1000 + rank,
          .outside_seconds = 12,
          .standings = {{.communicator = world, .entered = entered}}};
}

RankRecord waiting(int rank, std::uint64_t sequence, double seconds, const std::string& name = "barrier",
                   int size = 4) {
  auto slot = busy(rank, sequence);
  slot.wait = {.name = name, .communicator = world, .sequence = sequence, .size = size, .seconds = seconds};
  return slot;
}

std::vector<int> ranks_of(const std::vector<const RankRecord*>& slots) {
  std::vector<int> ranks;
  for (const auto* slot : slots) ranks.push_back(slot->rank);
  return ranks;
}

std::string text(const std::vector<RankRecord>& slots, const std::vector<int>& silent = {}) {
  const auto stall = find_stall(slots, patience);
  return stall ? describe(*stall, silent, "").problem : "";
}

RankRecord in_state(RankRecord slot, Life life) {
  slot.life = life;
  return slot;
}

// A rank whose process continues, while its device is at an operation of `tensors`, or before it.
RankRecord with_device(int rank, std::uint64_t entered, std::uint64_t sequence, bool is_its_turn,
                       double seconds = 130) {
  auto slot = busy(rank, 4);
  slot.standings.push_back({.communicator = tensors, .entered = entered});
  slot.device = {.name = "all_reduce", .communicator = tensors, .sequence = sequence, .is_its_turn = is_its_turn};
  if (is_its_turn)
    slot.wait = {.name = "all_reduce",
                 .bytes = 16,
                 .communicator = tensors,
                 .sequence = sequence,
                 .size = 3,
                 .seconds = seconds};
  return slot;
}

constexpr std::uint64_t others = 9;

// Of one thread, which is in one of three communicators and has come to no further collective of the other two.
RankRecord blocked(int rank, std::uint64_t communicator, double seconds, int size = 3) {
  auto slot = busy(rank, 4);
  slot.standings = {{.communicator = world, .entered = 4},
                    {.communicator = tensors, .entered = 4},
                    {.communicator = others, .entered = 4}};
  for (auto& standing : slot.standings) standing.entered += standing.communicator == communicator ? 1 : 0;
  slot.wait = {.name = "barrier", .communicator = communicator, .sequence = 5, .size = size, .seconds = seconds};
  slot.has_one_thread = true;
  return slot;
}

RankRecord in_phase(RankRecord slot, Phase phase) {
  slot.phase = phase;
  return slot;
}

}  // namespace

TEST_CASE("no stall is reported where nobody waits long") {
  CHECK_FALSE(find_stall({}, patience));
  CHECK_FALSE(find_stall(std::vector{busy(0, 5), busy(1, 5)}, patience));
  CHECK_FALSE(find_stall(std::vector{waiting(0, 5, 99.9), busy(1, 4)}, patience));
  CHECK(find_stall(std::vector{waiting(0, 5, 100), busy(1, 4)}, patience));
}

TEST_CASE("a missing rank is named, with its stack and the ranks that wait") {
  const std::vector slots = {waiting(0, 5, 130), waiting(1, 5, 120), busy(2, 4), waiting(3, 5, 10)};
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(stall->kind == Stall::Kind::absent);
  CHECK(ranks_of(stall->culprits) == std::vector{2});
  CHECK(text(slots) ==
        "does not come to barrier #5 (4 ranks), for which ranks 0-1, 3 have waited for 2 min 10 s: it has been outside "
        "of collectives for 12.0 s");
  CHECK(describe(*stall, {}, "").culprit->rank == 2);
}

TEST_CASE("several missing ranks are all named") {
  const std::vector slots = {waiting(0, 5, 130), in_state(busy(1, 4), Life::stopped), busy(2, 3)};
  CHECK(ranks_of(find_stall(slots, patience)->culprits) == std::vector{1, 2});
  CHECK_THAT(text(slots), ContainsSubstring("rank 0 has waited") && ContainsSubstring("1001 is stopped") &&
                              ContainsSubstring("nor has rank 2 (n1): it has been outside"));
  std::vector<RankRecord> many = {waiting(0, 5, 130, "barrier", 30)};
  for (int rank = 1; rank < 30; ++rank) many.push_back(busy(rank, 4));
  CHECK_THAT(text(many), ContainsSubstring("nor has rank 8 ") && ContainsSubstring("nor have 21 more") &&
                             !ContainsSubstring("nor has rank 9 "));
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
  CHECK(stall->kind == Stall::Kind::absent);
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
  CHECK(stall->kind == Stall::Kind::apart);
  CHECK(ranks_of(stall->culprits) == std::vector{3});
  CHECK(text(slots) ==
        "is in all_reduce #2 (16 B, 4 ranks) while ranks 0-2 are in barrier #5 (4 ranks): they have waited for each "
        "other for 2 min 10 s");
}

TEST_CASE("ranks that wait for each other in a cycle are reported soon") {
  const std::vector two = {blocked(0, world, 5), blocked(1, tensors, 1)};
  auto stall = find_stall(two, patience);
  REQUIRE(stall);
  CHECK(stall->kind == Stall::Kind::apart);
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

TEST_CASE("ranks that call one collective differently are reported as soon as both have waited for a while") {
  const auto slots_of = [](double seconds) {
    return std::vector{waiting(0, 5, 99, "agreement"), waiting(1, 5, seconds, "barrier"), busy(2, 4), busy(3, 5)};
  };
  const auto slots = slots_of(5);
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(stall->kind == Stall::Kind::apart);
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
  CHECK(stall->kind == Stall::Kind::apart);
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
  CHECK(find_stall(slots, patience)->kind == Stall::Kind::apart);
}

TEST_CASE("all ranks are in it: the network is to blame; if not all are known, that is said") {
  const std::vector all = {waiting(0, 5, 130, "barrier", 2), waiting(1, 5, 130, "barrier", 2)};
  CHECK(find_stall(all, patience)->kind == Stall::Kind::inside);
  CHECK_THAT(text(all), ContainsSubstring("all ranks have come to it"));
  const std::vector some = {waiting(0, 5, 130), waiting(1, 5, 130)};
  CHECK(find_stall(some, patience)->kind == Stall::Kind::unknown);
  CHECK(text(some, {1, 2}) ==
        "ranks 0-1 have been in barrier #5 (4 ranks) for 2 min 10 s, and nothing is known of 2 other ranks of it; no "
        "word from nodes 1-2 (counted from 0)");
}

TEST_CASE("stopped, vanished, left and blocked ranks are distinguished") {
  const auto about = [](Life life) { return text({waiting(0, 5, 130), in_state(busy(1, 4), life)}); };
  CHECK_THAT(about(Life::stopped), ContainsSubstring("its process 1001 is stopped"));
  CHECK_THAT(about(Life::vanished), ContainsSubstring("its process 1001 has vanished"));
  CHECK_THAT(about(Life::left), ContainsSubstring("it has left"));
  CHECK_THAT(about(Life::blocked), ContainsSubstring("is blocked in the kernel"));
}

TEST_CASE("the last status of a stopped rank is outdated: it is not waiting") {
  const std::vector slots = {waiting(0, 5, 130, "barrier", 2), in_state(waiting(1, 5, 3, "barrier", 2), Life::stopped)};
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(stall->kind == Stall::Kind::absent);
  CHECK(ranks_of(stall->culprits) == std::vector{1});
}

TEST_CASE("a wait for a dead rank is reported soon") {
  const auto said = [](const RankRecord& other, double seconds) {
    return find_stall(std::vector{waiting(0, 5, seconds, "barrier", 2), other}, patience).has_value();
  };
  CHECK_FALSE(said(in_state(busy(1, 4), Life::vanished), 9));
  CHECK(said(in_state(busy(1, 4), Life::vanished), 10));
  CHECK(said(in_state(busy(1, 4), Life::left), 10));
  CHECK_FALSE(said(in_state(busy(1, 4), Life::stopped), 99));
  CHECK(said(in_state(busy(1, 4), Life::stopped), 100));
  // It died in the middle; but whoever left in order after its part may have sent what is still on its way.
  CHECK(said(in_state(busy(1, 5), Life::vanished), 10));
  CHECK_FALSE(said(in_state(busy(1, 5), Life::left), 99));
}

TEST_CASE("a rank that was stopped right after a communicator was made is blamed instead of an unknown one") {
  auto silenced = in_state(busy(1, 4), Life::stopped);
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

TEST_CASE("patient phases and debuggers excuse, death and being stopped do not") {
  const auto said = [](const RankRecord& other) {
    return find_stall(std::vector{waiting(0, 5, 1000, "barrier", 2), other}, patience).has_value();
  };
  for (const auto phase : {Phase::checkpoint, Phase::one_side_first}) {
    CHECK_FALSE(said(in_phase(busy(1, 4), phase)));
    CHECK_FALSE(said(in_state(in_phase(busy(1, 4), phase), Life::blocked)));
    CHECK(said(in_state(in_phase(busy(1, 4), phase), Life::stopped)));
    CHECK(said(in_state(in_phase(busy(1, 4), phase), Life::vanished)));
    // In the same phase, but in another collective: it does no work that takes long.
    CHECK(said(in_phase(waiting(1, 4, 1000, "gather", 2), phase)));
  }
  CHECK(said(in_phase(busy(1, 4), Phase::set_up)));
  CHECK_FALSE(said(in_state(busy(1, 4), Life::traced)));
  auto silenced = in_state(busy(1, 4), Life::traced);
  silenced.standings.clear();
  CHECK_FALSE(said(silenced));
  const auto traced = in_state(waiting(0, 5, 1000, "barrier", 2), Life::traced);
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

TEST_CASE("the line has the innermost calls, the details have all calls of one rank a side") {
  auto late = busy(1, 4);
  late.stack = {"a", "b", "c", "d", "e", "f"};
  const std::vector slots = {waiting(0, 5, 130, "barrier", 3), late, waiting(2, 5, 130, "barrier", 3)};
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  const auto report = describe(*stall, {}, "a note");
  CHECK_THAT(report.problem, ContainsSubstring("in a < b < c < d < e; a note"));
  CHECK(report.details ==
        "rank 1 (n0, process 1001): it has been outside of collectives for 12.0 s, in a < b < c < d < e\n"
        "    a\n    b\n    c\n    d\n    e\n    f\n"
        "rank 0 (n0, process 1000): in barrier #5 (3 ranks) for 2 min 10 s\n");
}

TEST_CASE("ranks are named in ranges, not more than eight") {
  CHECK(runtime::ranges_of(std::vector<int>{}).empty());
  CHECK(runtime::ranges_of(std::vector{3}) == "3");
  CHECK(runtime::ranges_of(std::vector{0, 1, 2, 5, 7, 8}) == "0-2, 5, 7-8");
  std::vector<int> odd;
  for (int i = 1; i < 40; i += 2) odd.push_back(i);
  CHECK(runtime::ranges_of(odd) == "1, 3, 5, 7, 9, 11, 13, 15, and 12 more");
}

TEST_CASE("devices wait for a rank whose process has not begun the operation: it is missing") {
  auto late = busy(2, 4);
  late.standings.push_back({.communicator = tensors, .entered = 8});
  const std::vector slots = {with_device(0, 9, 9, true), with_device(1, 12, 9, true), late};
  const auto stall = find_stall(slots, patience);
  REQUIRE(stall);
  CHECK(stall->kind == Stall::Kind::absent);
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
  CHECK(stall->kind == Stall::Kind::absent);
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
  CHECK(stall->kind == Stall::Kind::inside);
  CHECK_THAT(text(all), ContainsSubstring("it runs on the GPUs of all ranks, yet it does not end"));
}

TEST_CASE("devices that compute for long keep nobody, and a host's wait for such a rank finds it") {
  CHECK_FALSE(find_stall(std::vector{with_device(0, 9, 9, false), with_device(1, 9, 9, false)}, patience));
  CHECK_FALSE(find_stall(std::vector{with_device(0, 9, 9, true, 99), with_device(1, 9, 9, false)}, patience));
  // 0 waits in a barrier for 1, whose device waits for 2's.
  const std::vector chain = {waiting(0, 5, 130, "barrier", 3), with_device(1, 9, 9, true, 20),
                             with_device(2, 9, 9, false)};
  const auto stall = find_stall(chain, patience);
  REQUIRE(stall);
  CHECK(ranks_of(stall->culprits) == std::vector{2});
}
