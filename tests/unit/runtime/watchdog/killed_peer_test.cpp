#include "runtime/watchdog/killed_peer.hpp"

#include <csignal>

#include "runtime/ending/last_signal.hpp"
#include "support/catch.hpp"
#include "unit/runtime/watchdog/stalls.hpp"

using namespace hortator;
using namespace hortator::stalls;
using runtime::killed_peer;

namespace {

using Node = std::vector<runtime::NodeRank>;

runtime::NodeRank alive(int rank) { return {.record = busy(rank, 1)}; }

runtime::NodeRank gone(int rank, int last_signal) {
  return {.record = in_state(busy(rank, 1), RankLife::vanished), .last_signal = last_signal};
}

}  // namespace

TEST_CASE("a rank that has vanished without a word was killed by SIGKILL") {
  const auto failure = killed_peer({alive(0), alive(1), gone(2, 0)}, 0);
  REQUIRE(failure);
  CHECK(failure->exit_code == 137);
  CHECK(failure->party->rank == 2);
  CHECK(failure->party->host == "n1");
  CHECK(failure->party->pid == 1002);
  CHECK_THAT(failure->problem, ContainsSubstring("Killed by signal 9 (SIGKILL), often the kernel's") &&
                                   ContainsSubstring("last seen in the phase: running"));
}

TEST_CASE("a crash is named by its signal, with the collective in which the rank was") {
  Node node = {alive(0), gone(1, SIGSEGV)};
  node[1].record = in_state(waiting(1, 5, 3), RankLife::vanished);
  const auto failure = killed_peer(node, 0);
  REQUIRE(failure);
  CHECK(failure->exit_code == 139);
  CHECK_THAT(failure->problem,
             ContainsSubstring("Killed by signal 11 (SIGSEGV); last seen") && ContainsSubstring(" #5"));
}

TEST_CASE("only the first rank that lives reports") {
  const Node node = {gone(0, 0), alive(1), alive(2)};
  CHECK(killed_peer(node, 1));
  CHECK_FALSE(killed_peer(node, 2));
}

TEST_CASE("ranks that end with the job or have told why are not reported") {
  CHECK_FALSE(killed_peer({alive(0), alive(1)}, 0));
  CHECK_FALSE(killed_peer({alive(0), gone(1, SIGTERM)}, 0));
  CHECK_FALSE(killed_peer({alive(0), gone(1, runtime::has_reported)}, 0));
  CHECK_FALSE(killed_peer({alive(0), {.record = in_state(busy(1, 1), RankLife::left)}}, 0));
  CHECK(killed_peer({alive(0), gone(1, SIGTERM), gone(2, 0)}, 0)->party->rank == 2);
}
