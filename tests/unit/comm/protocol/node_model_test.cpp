// The protocol of the node's shared memory, explored state by state.
#include "node_model.hpp"

#include <vector>

#include "support/catch.hpp"

using namespace hortator::test::protocol;

namespace {

using Groups = std::vector<std::vector<Call>>;

// Two collectives follow each other in all ways; then all kinds in a row, started one by one and two at a time.
std::vector<Groups> programs() {
  std::vector<Groups> all;
  const std::vector calls = {Call::window, Call::staged, Call::slices, Call::refused};
  for (const auto first : calls) {
    for (const auto second : calls) {
      all.push_back({{first}, {second}, {Call::staged}});
      all.push_back({{first, second}, {Call::window, Call::slices}});
    }
  }
  all.push_back({{Call::window}, {Call::refused}, {Call::window, Call::window}, {Call::slices, Call::staged}});
  return all;
}

// The number of states that were visited.
long check(int ranks, const Groups& groups) {
  long states = 0;
  for (const auto fault : {Fault::none, Fault::abandoned, Fault::killed}) {
    const auto found = explore({.ranks = ranks, .groups = groups, .fault = fault});
    INFO(ranks << " ranks, fault " << static_cast<int>(fault));
    CHECK(found.broken == "");
    CHECK(found.finished > 0);
    CHECK((found.faults > 0) == (fault != Fault::none));
    CHECK((found.blocked > 0) == (fault == Fault::killed));
    states += found.states;
  }
  return states;
}

}  // namespace

TEST_CASE("no order of steps of 2 and 3 ranks reads unwritten memory, overwrites unread memory, or waits for ever") {
  for (const auto& groups : programs()) check(2, groups);
  const auto states = check(3, programs().back()) + check(3, {{Call::refused}, {Call::window, Call::window}});
  CHECK(states > 100'000);
}

TEST_CASE("no order of steps of 3 and 4 ranks does, whatever two collectives follow each other", "[.][whole]") {
  long states = 0;
  for (const auto& groups : programs()) states += check(3, groups);
  states += check(4, {{Call::refused}, {Call::window, Call::window}});
  for (const auto call : {Call::window, Call::staged, Call::slices}) states += check(4, {{call}, {Call::slices}});
  WARN(states << " states");
}

TEST_CASE("each rule of the protocol is needed: without it the exploration finds what goes wrong") {
  const auto broken = [](const Groups& groups, auto leave_out, Fault fault = Fault::none) {
    Model model{.ranks = 3, .groups = groups, .fault = fault};
    CHECK(explore(model).broken == "");
    leave_out(model.rules);
    return explore(model).broken;
  };
  const Groups windows = {{Call::window, Call::window}, {Call::window}};
  const Groups staged = {{Call::staged}, {Call::staged}};
  const Groups slices = {{Call::slices}, {Call::slices}};
  const Groups refused = {{Call::refused}, {Call::window, Call::window}};
  CHECK_THAT(broken(refused, [](Rules& rules) { rules.frees_posts_late = false; }),
             ContainsSubstring("another collective's post"));
  CHECK_THAT(broken(windows, [](Rules& rules) { rules.arrives_after_posting = false; }),
             ContainsSubstring("another collective's post"));
  CHECK_THAT(broken(windows, [](Rules& rules) { rules.waits_for_arrival = false; }),
             ContainsSubstring("another collective's post"));
  CHECK_THAT(broken(windows, [](Rules& rules) { rules.waits_for_done = false; }), ContainsSubstring("not complete"));
  CHECK_THAT(broken(windows, [](Rules& rules) { rules.done_after_part = false; }), ContainsSubstring("not complete"));
  CHECK_THAT(broken(staged, [](Rules& rules) { rules.meets_before_reading = false; }),
             ContainsSubstring("another turn's block"));
  CHECK_THAT(broken(staged, [](Rules& rules) { rules.alternates_halves = false; }),
             ContainsSubstring("another turn's block"));
  CHECK_THAT(broken(slices, [](Rules& rules) { rules.meets_after_reducing = false; }),
             ContainsSubstring("not reduced"));
  CHECK_THAT(broken(
                 slices, [](Rules& rules) { rules.looks_for_aborts = false; }, Fault::abandoned),
             ContainsSubstring("waits for ever"));
}
