// The text of the reports.
#include "runtime/watchdog/stall.hpp"

#include "support/catch.hpp"
#include "unit/runtime/watchdog/stalls.hpp"

using namespace hortator;
using namespace hortator::stalls;

TEST_CASE("several missing ranks are all named") {
  const std::vector slots = {waiting(0, 5, 130), in_state(busy(1, 4), RankLife::stopped), busy(2, 3)};
  CHECK(ranks_of(find_stall(slots, patience)->culprits) == std::vector{1, 2});
  CHECK_THAT(text(slots), ContainsSubstring("rank 0 has waited") && ContainsSubstring("1001 is stopped") &&
                              ContainsSubstring("nor has rank 2 (n1): it has been outside"));
  std::vector<RankRecord> many = {waiting(0, 5, 130, "barrier", 30)};
  for (int rank = 1; rank < 30; ++rank) many.push_back(busy(rank, 4));
  CHECK_THAT(text(many), ContainsSubstring("nor has rank 8 ") && ContainsSubstring("nor have 21 more") &&
                             !ContainsSubstring("nor has rank 9 "));
}

TEST_CASE("stopped, vanished, left and blocked ranks are distinguished") {
  const auto about = [](RankLife life) { return text({waiting(0, 5, 130), in_state(busy(1, 4), life)}); };
  CHECK_THAT(about(RankLife::stopped), ContainsSubstring("its process 1001 is stopped"));
  CHECK_THAT(about(RankLife::vanished), ContainsSubstring("its process 1001 has vanished"));
  CHECK_THAT(about(RankLife::left), ContainsSubstring("it has left"));
  CHECK_THAT(about(RankLife::blocked), ContainsSubstring("is blocked in the kernel"));
}

TEST_CASE("what a rank would throw if the others came is in the report, whichever rank is blamed") {
  for (const int rank : {0, 1}) {
    std::vector slots = {waiting(0, 5, 130, "barrier", 2), waiting(1, 4, 130, "all_reduce", 2)};
    slots[static_cast<std::size_t>(rank)].note = "no gradient for a.weight";
    CHECK_THAT(text(slots), ContainsSubstring("; rank " + std::to_string(rank) + " reports: no gradient for a.weight"));
  }
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

TEST_CASE("ranks in different collectives are reported with what the program has called, and where") {
  using Stack = std::vector<std::string>;
  CHECK(runtime::program_call(Stack{"poll", "libhortator.so.0.1+0x1f", "hortator::Accelerator::save_state",
                                    "train+0x2f41", "hortator::run", "main"}) ==
        "hortator::Accelerator::save_state, called in train+0x2f41");
  // A function of the program that Hortator calls, and that calls Hortator again: the outer call counts.
  CHECK(runtime::program_call(Stack{"poll", "hortator::State::wait_for_everyone", "callback",
                                    "hortator::Accelerator::step", "loop", "hortator::run", "main"}) ==
        "hortator::Accelerator::step, called in loop");
  CHECK(runtime::program_call(Stack{"poll", "hortator::State::wait_for_everyone"}) ==
        "hortator::State::wait_for_everyone");
  CHECK(runtime::program_call(Stack{"poll", "dawdle", "hortator::run", "main"}).empty());
  CHECK(runtime::program_call(Stack{}).empty());

  auto gathers = waiting(1, 7, 130, "all_gather", 2);
  gathers.stack = {"poll", "hortator::Accelerator::gather", "train+0x2f41", "hortator::run", "main"};
  auto reduces = waiting(0, 5, 130, "all_reduce", 2);
  reduces.stack = {"poll", "hortator::Accelerator::backward", "step", "hortator::run", "main"};
  const auto stall = runtime::Stall{.kind = runtime::StallKind::apart,
                                    .culprits = {&gathers},
                                    .sides = {{.wait = *reduces.wait, .ranks = {&reduces}, .seconds = 130},
                                              {.wait = *gathers.wait, .ranks = {&gathers}, .seconds = 130}}};
  const auto report = describe(stall, {}, "");
  CHECK_THAT(report.problem, ContainsSubstring("rank 0: hortator::Accelerator::backward, called in step; rank 1: "
                                               "hortator::Accelerator::gather, called in train+0x2f41)"));
  CHECK(report.where == "hortator::Accelerator::gather, called in train+0x2f41");
}

TEST_CASE("ranks are named in ranges, not more than eight") {
  CHECK(runtime::ranges_of(std::vector<int>{}).empty());
  CHECK(runtime::ranges_of(std::vector{3}) == "3");
  CHECK(runtime::ranges_of(std::vector{0, 1, 2, 5, 7, 8}) == "0-2, 5, 7-8");
  std::vector<int> odd;
  for (int i = 1; i < 40; i += 2) odd.push_back(i);
  CHECK(runtime::ranges_of(odd) == "1, 3, 5, 7, 9, 11, 13, 15, and 12 more");
}
