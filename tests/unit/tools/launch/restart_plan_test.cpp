#include "tools/launch/restart_plan.hpp"

#include "support/catch.hpp"

using namespace hortator;
using observe::RestartRecord;
using tools::RestartLimits;

namespace {

RestartRecord failed(double time, std::int64_t step, const char* error_class = "crash") {
  return {.time = time,
          .exit_code = 139,
          .decision = "retry",
          .rule = "a rule",
          .error_class = error_class,
          .reason = "a reason",
          .rank = 0,
          .step = step,
          .is_restarted = true};
}

const RestartLimits many = {.in_total = 100};

}  // namespace

TEST_CASE("a restart is refused by the rules, by signals and by limits, and says why") {
  const auto refused = [](RestartRecord record, RestartLimits limits, std::vector<RestartRecord> earlier = {}) {
    return tools::plan_restart(record, earlier, limits).refused;
  };
  CHECK(refused(failed(0, 5), many).empty());
  auto stopped = failed(0, 5);
  stopped.decision = "stop";
  CHECK(refused(stopped, many) == "a reason (rule a rule)");
  auto signalled = failed(0, 5);
  signalled.was_signalled = true;
  CHECK(refused(signalled, many) == "the job was ended from outside");
  auto usage = failed(0, 0);
  usage.exit_code = 2;
  CHECK(refused(usage, many).empty());  // a rank's record has decided
  usage.rank = -1;
  CHECK(refused(usage, many) == "exit code 2 is that of wrong usage");
  CHECK(refused(failed(0, 5), {}) == "no restart was asked for (--max-restarts)");
  CHECK(refused(failed(0, 5), {.in_total = 1}).empty());
  CHECK(refused(failed(9, 5), {.in_total = 1}, {failed(0, 3)}) == "it was restarted 1 time already");
  const std::vector<RestartRecord> two = {failed(0, 3), failed(1000, 4)};
  CHECK(refused(failed(2000, 5), {.in_total = 9, .per_hour = 3}, two).empty());
  CHECK(refused(failed(2000, 5), {.in_total = 9, .per_hour = 2}, two) ==
        "it was restarted 2 times within an hour, the limit of --restarts-per-hour");
  CHECK(refused(failed(3601, 5), {.in_total = 9, .per_hour = 2}, two).empty());
}

TEST_CASE("the wait grows only while there is no progress") {
  const auto delay = [](const char* error_class, std::vector<std::int64_t> steps) {
    std::vector<RestartRecord> all;
    for (const auto step : steps) all.push_back(failed(0, step, error_class));
    const auto last = all.back();
    all.pop_back();
    const auto plan = tools::plan_restart(last, all, many);
    CHECK(plan.restarts);
    return plan.delay;
  };
  CHECK(delay("killed", {5}) == 0);
  CHECK(delay("killed", {5, 9}) == 0);
  CHECK(delay("killed", {5, 5}) == 1);
  CHECK(delay("killed", {5, 5, 5}) == 2);
  CHECK(delay("killed", {5, 5, 5, 5}) == 4);
  CHECK(delay("killed", {5, 5, 5, 8}) == 0);
  CHECK(delay("killed", {0, 5, 5}) == 1);
  auto before = failed(0, 0, "killed");
  auto after = before;
  before.memory_checkpoint = 3;
  after.memory_checkpoint = 4;
  CHECK(tools::plan_restart(after, {before}, many).delay == 0);
  CHECK(tools::plan_restart(before, {before}, many).delay == 1);
  CHECK(delay("node", {5}) == 0);  // it is left out
  CHECK(delay("node", {5, 5}) == 10);
  for (const char* error_class : {"network", "storage", "device", "busy", "space"}) {
    CHECK(delay(error_class, {5}) == 5);
    CHECK(delay(error_class, {5, 9}) == 5);
    CHECK(delay(error_class, {5, 5}) == 10);
    CHECK(delay(error_class, {5, 5, 5}) == 20);
    CHECK(delay(error_class, std::vector<std::int64_t>(20, 5)) == 300);
  }
}

TEST_CASE("the rows of restarts.jsonl are read back") {
  auto record = failed(1.5, 7);
  record.launch = "l";
  record.memory_checkpoint = 12;
  record.report = "line\nline \xff";
  record.refused = "no";
  record.left_out = {"n2 was slow in 2 attempts"};
  record.kept = {"n1 was slow"};
  const auto row = to_row(record);
  CHECK(row.back() == '\n');
  CHECK(row.find('\n') == row.size() - 1);
  const auto back = observe::parse_restart(row);
  REQUIRE(back.has_value());
  CHECK(back->launch == "l");
  CHECK(back->time == 1.5);
  CHECK(back->step == 7);
  CHECK(back->memory_checkpoint == 12);
  CHECK(back->is_restarted);
  CHECK(back->error_class == "crash");
  CHECK(back->refused == "no");
  CHECK(back->left_out == record.left_out);
  CHECK(back->kept == record.kept);
  CHECK_FALSE(observe::parse_restart("{").has_value());
  CHECK_FALSE(observe::parse_restart(R"({"step": "x"})").has_value());
}
