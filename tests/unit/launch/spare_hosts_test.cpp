#include "launch/restarts/spare_hosts.hpp"

#include "support/catch.hpp"

using namespace hortator::launching;

namespace {

LaunchRequest without(const LaunchRequest& request, const char* host, const std::vector<std::string>& at_hand = {},
                      bool by_srun = false) {
  return without_host(request, supply_of(request, at_hand), host, by_srun);
}

}  // namespace

TEST_CASE("a launch uses its list of hosts, else those at hand, and as many as its ranks need") {
  const auto of_list =
      supply_of({.ranks = 4, .nodes = 2, .ranks_per_node = 2, .hosts = "n1:2,n2:2,n3:2"}, {"n8", "n9"});
  CHECK(of_list.hosts == std::vector<std::string>{"n1:2", "n2:2", "n3:2"});
  CHECK(of_list.needed == 2);
  CHECK(of_list.ranks_per_host == 2);
  const auto of_nodes = supply_of({.ranks = 6, .nodes = 2}, {"n1", "n2", "n3"});
  CHECK(of_nodes.needed == 2);
  CHECK(of_nodes.ranks_per_host == 3);
  const auto uncounted = supply_of({.ranks = 5, .excluded_hosts = "n2"}, {"n1", "n2", "n3"});
  CHECK(uncounted.hosts == std::vector<std::string>{"n1", "n3"});
  CHECK(uncounted.needed == 2);
  CHECK(uncounted.ranks_per_host == 3);
  CHECK(supply_of({.ranks = 2}, {}).hosts.empty());
}

TEST_CASE("a spare host takes the place of one that is left out") {
  const LaunchRequest request{.ranks = 4, .nodes = 2, .ranks_per_node = 2, .hosts = "n1,n2,n3"};
  for (const char* host : {"n2", "n2.site.org"}) {
    const auto changed = without(request, host);
    CHECK(changed.hosts == "n1,n3");
    CHECK(changed.ranks == 4);
    CHECK(changed.nodes == 2);
  }
}

TEST_CASE("of hosts by address only the named one is left out") {
  const LaunchRequest request{.ranks = 4, .nodes = 2, .ranks_per_node = 2, .hosts = "10.0.0.1:2,10.0.0.2:2,10.0.0.3:2"};
  CHECK(without(request, "10.0.0.2").hosts == "10.0.0.1:2,10.0.0.3:2");
}

TEST_CASE("without spares there are fewer ranks, with as many on each host as before") {
  const auto changed = without({.ranks = 6, .nodes = 3, .ranks_per_node = 2, .hosts = "n1:2,n2:2,n3:2"}, "n2");
  CHECK(changed.hosts == "n1:2,n3:2");
  CHECK(changed.ranks == 4);
  CHECK(changed.nodes == 2);
  const auto uncounted = without({.ranks = 5, .hosts = "n1,n2,n3"}, "n1");
  CHECK(uncounted.ranks == 4);
  CHECK_FALSE(uncounted.nodes);
}

TEST_CASE("the last host stays") {
  const auto same = without({.ranks = 2, .nodes = 1, .hosts = "n1:2"}, "n1");
  CHECK(same.hosts == "n1:2");
  CHECK(same.ranks == 2);
  CHECK(without({.ranks = 2}, "n1", {"n1"}, true).excluded_hosts.empty());
}

TEST_CASE("the hosts of a host file, or of a batch job, become a list without the host") {
  const auto of_file = without({.ranks = 4, .ranks_per_node = 2, .hostfile = "hosts"}, "n1", {"n1:2", "n2:2", "n3:2"});
  CHECK(of_file.hosts == "n2:2,n3:2");
  CHECK(of_file.hostfile.empty());
  CHECK(of_file.ranks == 4);
  const auto of_job = without({.ranks = 4, .nodes = 2}, "n1", {"n1", "n2"});
  CHECK(of_job.hosts == "n2");
  CHECK(of_job.ranks == 2);
  CHECK(of_job.nodes == 1);
}

TEST_CASE("srun leaves hosts out by name, and starts fewer ranks without spare nodes") {
  const std::vector<std::string> nodes = {"n1", "n2", "n3"};
  auto request = without({.ranks = 4, .nodes = 2, .ranks_per_node = 2}, "n2", nodes, true);
  CHECK(request.excluded_hosts == "n2");
  CHECK(request.hosts.empty());
  CHECK(request.ranks == 4);
  CHECK(request.nodes == 2);
  request = without(request, "n3", nodes, true);
  CHECK(request.excluded_hosts == "n2,n3");
  CHECK(request.ranks == 2);
  CHECK(request.nodes == 1);
  CHECK(without({.ranks = 3}, "n1", nodes, true).nodes == 2);  // the allocation has more
  CHECK(without({.ranks = 4, .nodes = 2, .hosts = "n1,n2,n3"}, "n2", nodes, true).hosts == "n1,n3");
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
