#include "tools/launch/killed_rank.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/ending/failure.hpp"
#include "support/catch.hpp"

using namespace hortator;
using tools::KilledRankFacts;

namespace {

observe::RankStatus status_of_rank_1() {
  return {.run_id = "run",
          .rank = 1,
          .host = "n1.site",
          .time = 1000,
          .phase = "training",
          .loops = {{.title = "epoch", .done = 2, .total = 10}, {.title = "", .done = 17}},
          .updates = 217};
}

const launching::KilledRank killed_1 = {.rank = 1, .pid = 55, .host = "n1", .signal = SIGKILL};

std::vector<std::string> keys(const std::string& record) {
  std::vector<std::string> names;
  const auto json = nlohmann::ordered_json::parse(record);
  for (const auto& [name, value] : json.items()) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("a killed rank is reported with its signal, the likely cause and its last status") {
  CHECK(tools::killed_problem({.killed = {.rank = 1, .signal = SIGSEGV}}) == "Killed by signal 11 (SIGSEGV)");
  CHECK_THAT(tools::killed_problem({.killed = {.rank = 1}}), ContainsSubstring("exited without finalising MPI"));
  CHECK_THAT(tools::killed_record({.killed = {.rank = 1}}), ContainsSubstring("\"exit_code\": 1,"));
  CHECK(tools::killed_problem({.killed = killed_1}) ==
        "Killed by signal 9 (SIGKILL), often the kernel's out-of-memory killer");
  CHECK(tools::killed_problem({.killed = killed_1,
                               .status = status_of_rank_1(),
                               .now = 1001.5,
                               .oom_before = tools::OomKills{.count = 4, .source = "/sys/fs/cgroup/a/memory.events"},
                               .oom_now = tools::OomKills{.count = 5, .source = "/sys/fs/cgroup/a/memory.events"}}) ==
        "Killed by signal 9 (SIGKILL), often the kernel's out-of-memory killer (oom_kill in "
        "/sys/fs/cgroup/a/memory.events: 4 before the run, 5 now); its status 1.5 s ago: training, epoch 2 of 10, loop "
        "17, 217 updates");
}

TEST_CASE("the record of a killed rank has the fields of any other failure") {
  const KilledRankFacts facts = {.killed = killed_1, .status = status_of_rank_1(), .now = 1001};
  const auto record = tools::killed_record(facts);
  CHECK(keys(record) == keys(runtime::failure_record({}, {})));
  const auto json = nlohmann::json::parse(record);
  CHECK(json["rank"] == 1);
  CHECK(json["host"] == "n1.site");
  CHECK(json["pid"] == 55);
  CHECK(json["exit_code"] == 137);
  CHECK(json["run_id"] == "run");
  CHECK(json["time"] == "1970-01-01T00:16:41Z");
}

TEST_CASE("the last status of a rank is that of this run") {
  const std::filesystem::path folder = "killed_rank_status";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / observe::status_folder);
  CHECK_FALSE(tools::last_status(folder, 1, 0));
  {
    std::ofstream out(folder / observe::status_folder / observe::ranks_file, std::ios::binary);
    out << std::string(observe::row_bytes, ' ') << observe::to_row(status_of_rank_1());
  }
  REQUIRE(tools::last_status(folder, 1, 999));
  CHECK(tools::last_status(folder, 1, 999)->updates == 217);
  CHECK_FALSE(tools::last_status(folder, 1, 1001));  // of an earlier run
  CHECK_FALSE(tools::last_status(folder, 0, 0));
  CHECK_FALSE(tools::last_status(folder, 2, 0));
}

TEST_CASE("the counter of the out-of-memory killer is read from the control group or from the machine") {
  CHECK(tools::parse_oom_kills("low 0\noom 7\noom_kill 3\noom_group_kill 0\n") == 3);
  CHECK_FALSE(tools::parse_oom_kills("oom_kill_disable 0\nunder_oom 0\n"));
  CHECK(tools::parse_control_group("1:name=systemd:/x\n0::/user.slice/a\n") == "user.slice/a");
  CHECK(tools::parse_control_group("5:memory:/x\n").empty());
  const auto now = tools::count_oom_kills();
  if (now) CHECK(now->count >= 0);
}
