#include "launch/restarts/spare_hosts.hpp"

#include "support/catch.hpp"

using namespace hortator::launching;

TEST_CASE("a spare host takes the place of a bad one") {
  const LaunchRequest request{.ranks = 4, .nodes = 2, .ranks_per_node = 2, .hosts = "n1,n2,n3"};
  const auto changed = without_host(request, {.name = "n2"});
  REQUIRE(changed);
  CHECK(changed->hosts == "n1,n3");
  CHECK(changed->ranks == 4);
  CHECK(changed->nodes == 2);
  CHECK(without_host(request, {.name = "n2.site.org"})->hosts == "n1,n3");
}

TEST_CASE("of hosts by address only the bad one is left out") {
  const LaunchRequest request{.ranks = 4, .nodes = 2, .ranks_per_node = 2, .hosts = "10.0.0.1:2,10.0.0.2:2,10.0.0.3:2"};
  const auto changed = without_host(request, {.name = "10.0.0.2", .is_lost = true});
  REQUIRE(changed);
  CHECK(changed->hosts == "10.0.0.1:2,10.0.0.3:2");
  CHECK(changed->ranks == 4);
}

TEST_CASE("without spares a host is left out once it is lost, or has failed twice, with its ranks") {
  const LaunchRequest request{.ranks = 6, .nodes = 3, .ranks_per_node = 2, .hosts = "n1:2,n2:2,n3:2"};
  CHECK_FALSE(without_host(request, {.name = "n2"}));
  for (const auto& host : {BadHost{.name = "n2", .is_lost = true}, BadHost{.name = "n2", .failures = 2}}) {
    const auto changed = without_host(request, host);
    REQUIRE(changed);
    CHECK(changed->hosts == "n1:2,n3:2");
    CHECK(changed->ranks == 4);
    CHECK(changed->nodes == 2);
  }
  const LaunchRequest uncounted{.ranks = 5, .hosts = "n1,n2,n3"};
  const auto changed = without_host(uncounted, {.name = "n1", .is_lost = true});
  REQUIRE(changed);
  CHECK(changed->ranks == 4);
  CHECK_FALSE(changed->nodes);
}

TEST_CASE("a launch without a list of hosts, without this host, or with no other stays as it is") {
  CHECK_FALSE(without_host({.ranks = 2}, {.name = "n1", .is_lost = true}));
  CHECK_FALSE(without_host({.ranks = 2, .hosts = "n1,n2"}, {.name = "n3", .is_lost = true}));
  CHECK_FALSE(without_host({.ranks = 2, .hosts = "n1"}, {.name = "n1", .is_lost = true}));
}

TEST_CASE("the host that mpirun has lost is read from its report") {
  CHECK(
      lost_host("--------\nORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[5440,0],0] on node "
                "n1\n  Remote daemon: [[5440,0],1] on node n2\n\nThis is usually due to") == "n2");
  CHECK(
      lost_host("PRTE has lost communication with a remote daemon.\n\n  HNP daemon   : [prterun-n1-7@0,0] on node n1\n"
                "  Remote daemon: [prterun-n1-7@0,2] on node n3.site.org\n") == "n3.site.org");
  CHECK(lost_host("mpirun noticed that process rank 1 with PID 3 on node n2 exited on signal 9 (Killed).").empty());
  CHECK(lost_host("").empty());
}
