#include "launch/restarts/keeping.hpp"

#include "support/catch.hpp"

using namespace hortator::launching;

namespace {

KeeperRequest keepers_on(std::vector<std::string> hosts) {
  return {.hosts = std::move(hosts),
          .this_host = "login1.site.org",
          .remote_shell = {"ssh", "-o", "BatchMode=yes"},
          .keeper = {"/opt/my tools/hortator", "keep", "/dev/shm/hortator-1-2"}};
}

}  // namespace

TEST_CASE("hosts are read from lists and files, each once") {
  CHECK(hosts_of_list("n1:2,n2,n1:4") == std::vector<std::string>{"n1", "n2"});
  CHECK(hosts_of_list("").empty());
  CHECK(hosts_of_file("# all\nn1 slots=2\n\n  n2:4\nn1\nn3\tmax_slots=1 # spare\r\n") ==
        std::vector<std::string>{"n1", "n2", "n3"});
  CHECK(hosts_of_file("").empty());
  CHECK(entries_of_file("# all\nn1 slots=2 max_slots=4\n\n  n2:4\nn3\tmax_slots=1 # spare\r\nn4 slots=x\n") ==
        std::vector<std::string>{"n1:2", "n2:4", "n3", "n4"});
}

TEST_CASE("keepers start here without hosts, on each host otherwise, and by one srun in Slurm") {
  const auto here = keeper_commands({}, keepers_on({}));
  REQUIRE(here.size() == 1);
  CHECK(here[0].command == std::vector<std::string>{"/opt/my tools/hortator", "keep", "/dev/shm/hortator-1-2"});
  CHECK(here[0].keepers == 1);

  const auto on_hosts = keeper_commands({}, keepers_on({"login1", "n2", "localhost"}));
  REQUIRE(on_hosts.size() == 3);
  CHECK(on_hosts[0] == here[0]);
  CHECK(on_hosts[1].command == std::vector<std::string>{"ssh", "-o", "BatchMode=yes", "n2",
                                                        "'/opt/my tools/hortator' keep /dev/shm/hortator-1-2"});
  CHECK(on_hosts[1].where == "n2");
  CHECK(on_hosts[2] == here[0]);

  auto of_allocation = keepers_on({});
  of_allocation.nodes = 4;
  const auto in_slurm = keeper_commands({.in_slurm = true}, of_allocation);  // one is spare
  REQUIRE(in_slurm.size() == 1);
  CHECK(in_slurm[0].keepers == 4);
  CHECK(in_slurm[0].command == std::vector<std::string>{"srun", "--overlap", "--no-kill", "--kill-on-bad-exit=0",
                                                        "--export=ALL", "--nodes=4", "--ntasks=4",
                                                        "--ntasks-per-node=1", "/opt/my tools/hortator", "keep",
                                                        "/dev/shm/hortator-1-2"});
}

TEST_CASE("a host by address is another one than this machine with an equal beginning, and no host is an option") {
  auto request = keepers_on({"10.0.0.2"});
  request.this_host = "10.0.0.1";
  CHECK(keeper_commands({}, request)[0].where == "10.0.0.2");
  request.hosts = {"-oProxyCommand=reboot"};
  CHECK_THROWS_WITH(keeper_commands({}, request), Catch::Contains("'-oProxyCommand=reboot'"));
}
