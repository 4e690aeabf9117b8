#include "runtime/environment/environment_warnings.hpp"

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace hortator;

namespace {

using Warnings = std::vector<std::string>;

Warnings in_pbs(const std::string& node_file, const runtime::Topology& topology,
                std::map<std::string, std::string> values = {}) {
  std::ofstream("nodes.txt") << node_file;
  values["PBS_NODEFILE"] = "nodes.txt";
  const auto variables = [&](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
  return runtime::environment_warnings(topology, variables, {});
}

Warnings with_names(const std::vector<std::string>& names) {
  return runtime::environment_warnings(
      {}, [](const char*) { return std::optional<std::string>(); }, names);
}

}  // namespace

TEST_CASE("hosts of a PBS job that a run does not use are reported") {
  const auto warnings = in_pbs("pbs1\npbs1\npbs2\r\npbs2\n", {.size = 2, .nodes = 1});
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("The PBS job has 2 hosts, and this run uses 1") &&
                              ContainsSubstring("--hostfile $PBS_NODEFILE"));
  CHECK(in_pbs("pbs1\npbs2\n", {.size = 4, .nodes = 2}).empty());
  CHECK(in_pbs("pbs1\npbs1\n", {.size = 2, .nodes = 1}).empty());
  CHECK(in_pbs("pbs1\npbs2\n", {.size = 1, .nodes = 1}).empty());  // a tool, not a run over the job's hosts
  CHECK(in_pbs("pbs1\npbs2\n", {.size = 2, .nodes = 1}, {{"HORTATOR_RUN_NOTE", "x"}}).empty());  // a spare host
  CHECK(in_pbs("", {.size = 2, .nodes = 1}).empty());
}

TEST_CASE("a misspelt variable is reported with the one that was meant") {
  const auto warnings = with_names({"HORTATOR_DEBUG", "HORTATOR_SITE_NAME_OF_OURS", "HORTATOR_ZERO_STGE"});
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("HORTATOR_ZERO_STGE has no effect") &&
                              ContainsSubstring("Did you mean HORTATOR_ZERO_STAGE?"));
}
