#include "runtime/watchdog/killed_peer.hpp"

#include <algorithm>
#include <csignal>

#include "runtime/ending/last_signal.hpp"
#include "support/catch.hpp"
#include "unit/runtime/watchdog/stalls.hpp"

using namespace hortator;
using namespace hortator::stalls;
using runtime::has_killed_peer;
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

TEST_CASE("whatever has become of four ranks, a killed one is reported by exactly one of those that live") {
  const auto rank_in = [](int rank, int what) -> runtime::NodeRank {
    switch (what) {
      case 0:
        return alive(rank);
      case 1:
        return {.record = in_state(busy(rank, 1), RankLife::left)};
      case 2:
        return gone(rank, 0);
      case 3:
        return gone(rank, SIGSEGV);
      case 4:
        return gone(rank, SIGTERM);
      default:
        return gone(rank, runtime::has_reported);
    }
  };
  int reported = 0;
  for (int all = 0; all < 6 * 6 * 6 * 6; ++all) {
    Node node;
    for (int rank = 0, rest = all; rank < 4; ++rank, rest /= 6) node.push_back(rank_in(rank, rest % 6));
    const bool any_lives =
        std::ranges::any_of(node, [](const auto& one) { return one.record.life < RankLife::vanished; });
    int reports = 0;
    for (int own = 0; own < 4; ++own) {
      const auto failure = killed_peer(node, own);
      if (!failure) continue;
      ++reports;
      REQUIRE(node[static_cast<std::size_t>(own)].record.life < RankLife::vanished);
      const auto& named = node[static_cast<std::size_t>(failure->party->rank)];
      REQUIRE((named.last_signal == 0 || named.last_signal == SIGSEGV));
    }
    REQUIRE(reports == (any_lives && has_killed_peer(node) ? 1 : 0));
    reported += reports;
  }
  CHECK(reported > 100);
}
