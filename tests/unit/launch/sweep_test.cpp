#include "launch/job/sweep.hpp"

#include <hortator/error.hpp>
#include <set>

#include "launch/job/job.hpp"
#include "support/catch.hpp"

using namespace hortator::launching;
using Words = std::vector<std::string>;

TEST_CASE("an axis has a name and values") {
  const auto axis = parse_axis("lr=0.1,0.01", "--over");
  CHECK(axis.name == "lr");
  CHECK(axis.values == Words{"0.1", "0.01"});
  CHECK(parse_axis("--lr=a=b", "--over").name == "lr");
  CHECK(parse_axis("--lr=a=b", "--over").values == Words{"a=b"});
  for (const auto* bad : {"lr", "=1", "lr=", "lr=1,", "lr=,1", ""})
    CHECK_THROWS_WITH(parse_axis(bad, "--over"), ContainsSubstring("--over: expected NAME=VALUE,VALUE"));
}

TEST_CASE("the tasks are all combinations, in order") {
  const auto tasks = sweep_tasks({{"lr", {"1", "2"}}, {"b", {"x", "y", "z"}}}, {"./train"});
  REQUIRE(tasks.size() == 6);
  CHECK(tasks[0].command == Words{"./train", "--lr", "1", "--b", "x"});
  CHECK(tasks[1].command == Words{"./train", "--lr", "1", "--b", "y"});
  CHECK(tasks[3].command == Words{"./train", "--lr", "2", "--b", "x"});
  std::set<Words> seen;
  for (const auto& task : tasks) seen.insert(task.command);
  CHECK(seen.size() == 6);
}

TEST_CASE("a name in braces stands for the value") {
  const auto tasks = sweep_tasks({{"seed", {"1", "2"}}}, {"./train", "--name", "run-{seed}", "--seed={seed}"});
  CHECK(tasks[1].command == Words{"./train", "--name", "run-2", "--seed=2"});
}

TEST_CASE("a name in braces that the sweep does not have is refused, and other braces are text") {
  CHECK_THROWS_WITH(sweep_tasks({{"seed", {"1"}}}, {"./train", "--name=run-{sed}"}),
                    ContainsSubstring("'--name=run-{sed}': the sweep has no values for {sed}"));
  const auto tasks = sweep_tasks({{"seed", {"1"}}}, {"./train", R"({"a": 1})", "{}", "{a b}", "{"});
  CHECK(tasks[0].command == Words{"./train", R"({"a": 1})", "{}", "{a b}", "{", "--seed", "1"});
}

TEST_CASE("too many tasks and a name given twice are refused") {
  Words many;
  for (int i = 0; i < 40; ++i) many.push_back(std::to_string(i));
  CHECK_THROWS_WITH(sweep_tasks({{"a", many}, {"b", many}}, {"./x"}), ContainsSubstring("more than 1000 tasks"));
  CHECK_THROWS_WITH(sweep_tasks({{"a", {"1"}}, {"a", {"2"}}}, {"./x"}), ContainsSubstring("given twice"));
}

TEST_CASE("the record of a task is one line of JSON") {
  const auto tasks = sweep_tasks({{"lr", {"\"1\"\n"}}}, {"./train"});
  const auto line = to_json(tasks[0], 0);
  CHECK(line.find('\n') == std::string::npos);
  CHECK_THAT(line, ContainsSubstring(R"({"schema_version":1,"task":0,"arguments":{"lr":"\"1\"\n"})"));
}

TEST_CASE("what a job may use counts requeues, tasks and the jobs of a chain") {
  const auto job = [](Scheduler scheduler, const Layer& more) {
    Layer layer = {{"nodes", {{"2"}, "x"}}, {"ranks_per_node", {{"4"}, "x"}}, {"time", {{"02:00:00"}, "x"}}};
    for (const auto& [key, value] : more) layer[key] = value;
    return job_of(Settings({layer}), scheduler, "./train", {});
  };
  CHECK(budget_of(job(Scheduler::slurm, {}), 1) == "up to 4 x 02:00:00 on 2 nodes = 16 node hours");
  CHECK(budget_of(job(Scheduler::slurm, {{"requeues", {{"0"}, "x"}}}), 1) == "02:00:00 on 2 nodes = 4 node hours");
  CHECK(budget_of(job(Scheduler::pbs, {}), 3) == "up to 3 x 02:00:00 on 2 nodes = 12 node hours");
  CHECK(budget_of(job(Scheduler::pbs, {{"array", {{"0-4"}, "x"}}}), 1) ==
        "02:00:00 for each of 5 tasks on 2 nodes = 20 node hours");
}
