#include "launch/pbs.hpp"

#include <hortator/error.hpp>
#include <map>

#include "launch/request.hpp"
#include "support/catch.hpp"

using namespace hortator::launching;

namespace {

using Variables = std::map<std::string, std::string>;

// All that PBS documents for a job's environment.
const Variables pbs_variables = {{"PBS_ENVIRONMENT", "PBS_BATCH"},
                                 {"PBS_JOBCOOKIE", "00A1"},
                                 {"PBS_JOBDIR", "/home/u"},
                                 {"PBS_JOBID", "123.server"},
                                 {"PBS_JOBNAME", "train"},
                                 {"PBS_MOMPORT", "15003"},
                                 {"PBS_NODEFILE", "/var/spool/pbs/aux/123.server"},
                                 {"PBS_NODENUM", "0"},
                                 {"PBS_O_HOST", "login"},
                                 {"PBS_O_WORKDIR", "/home/u/run"},
                                 {"PBS_QUEUE", "workq"},
                                 {"PBS_TASKNUM", "1"}};

std::optional<PbsJob> read(Variables variables, const std::optional<std::string>& file, const Variables& more = {}) {
  for (const auto& [name, value] : more) variables[name] = value;
  return read_pbs(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      [&](const std::string&) { return file; });
}

}  // namespace

TEST_CASE("hosts and slots are read from the node file, by line or by chunk") {
  const auto by_slot = read(pbs_variables, "n1.x\nn1.x\nn2.x\nn2.x\n");
  REQUIRE(by_slot);
  CHECK(by_slot->hosts == std::vector<std::string>{"n1.x", "n2.x"});
  CHECK(by_slot->slots == 4);
  CHECK(by_slot->id == "123.server");
  const auto by_chunk = read(pbs_variables, "n1\r\nn2\n\n");
  REQUIRE(by_chunk);
  CHECK(by_chunk->hosts == std::vector<std::string>{"n1", "n2"});
  CHECK(by_chunk->slots == 2);
}

TEST_CASE("the ranks of a PBS job are placed as it expects them") {
  CHECK(read(pbs_variables, "n1\nn1\nn2\nn2\n")->slots_of_host == 2);
  CHECK(read(pbs_variables, "n1\nn2\nn1\nn2\n")->slots_of_host == 2);
  CHECK_FALSE(read(pbs_variables, "n1\nn1\nn1\nn2\n")->slots_of_host.has_value());
  const auto ranks_per_node = [](LaunchRequest request, std::optional<int> slots) {
    place_on_hosts(request, slots, /*hosts=*/2);
    return request.ranks_per_node.value_or(0);
  };
  CHECK(ranks_per_node({.ranks = 2}, 1) == 1);
  CHECK(ranks_per_node({.ranks = 4}, 2) == 2);
  CHECK(ranks_per_node({.ranks = 1}, 2) == 1);
  CHECK(ranks_per_node({.ranks = 5}, 2) == 0);  // more than PBS expects
  CHECK(ranks_per_node({.ranks = 4}, {}) == 0);
  CHECK(ranks_per_node({.ranks = 4, .hosts = "n1,n2"}, 2) == 0);
  CHECK(ranks_per_node({.ranks = 4, .map_by = "node"}, 2) == 0);
  CHECK(ranks_per_node({.ranks = 4, .nodes = 2, .ranks_per_node = 3}, 2) == 3);
}

TEST_CASE("there is no PBS job outside of a job") {
  CHECK(!read({}, std::nullopt));
  CHECK(!read({{"PBS_O_WORKDIR", "/x"}}, std::nullopt));
}

TEST_CASE("contradictory variables are errors that name them") {
  CHECK_THROWS_WITH(read(pbs_variables, std::nullopt), ContainsSubstring("which cannot be read"));
  CHECK_THROWS_WITH(read(pbs_variables, "\n"), ContainsSubstring("names no host"));
  CHECK_THROWS_WITH(read({{"PBS_JOBID", "1"}}, std::nullopt), ContainsSubstring("PBS_NODEFILE is not"));
  CHECK_THROWS_WITH(read(pbs_variables, "n1\nn2\n", {{"PBS_NUM_NODES", "3"}}),
                    ContainsSubstring("PBS_NUM_NODES is '3'"));
  CHECK_THROWS_WITH(read(pbs_variables, "n1\nn2\n", {{"PBS_NP", "x"}}), ContainsSubstring("PBS_NP is 'x'"));
  CHECK_NOTHROW(read(pbs_variables, "n1\nn2\n", {{"PBS_NUM_NODES", "2"}, {"PBS_NP", "2"}}));
}

TEST_CASE("the CPUs of all hosts are known unless the user has chosen the number of threads") {
  CHECK_FALSE(read(pbs_variables, "n1\nn2\n")->cpus.has_value());
  CHECK(read(pbs_variables, "n1\nn1\nn2\nn2\n", {{"NCPUS", "4"}, {"OMP_NUM_THREADS", "4"}})->cpus == 8);
  CHECK_FALSE(read(pbs_variables, "n1\n", {{"NCPUS", "4"}, {"OMP_NUM_THREADS", "2"}})->cpus.has_value());
  CHECK(read(pbs_variables, "n1\n", {{"NCPUS", "4"}, {"OMP_NUM_THREADS", "2"}})->cpus_of_host == 4);
  CHECK(read(pbs_variables, "n1\nn1\nn2\nn2\n", {{"NCPUS", "1"}})->cpus_of_host == 2);
  CHECK_FALSE(read(pbs_variables, "n1\n")->cpus_of_host.has_value());
  CHECK_FALSE(read(pbs_variables, "n1\n", {{"NCPUS", "x"}, {"OMP_NUM_THREADS", "x"}})->cpus.has_value());
}
