#include <csignal>
#include <fstream>
#include <set>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "tools/why/diagnosis.hpp"
#include "tools/why/why_json.hpp"
#include "tools/why/why_view.hpp"

using namespace hortator;
using runtime::EndingRecord;
using tools::Decision;
using tools::Evidence;
using tools::Rule;

namespace {

/// A record that the rule describes with its i-th alternatives.
EndingRecord example_of(const Rule& rule, std::size_t i) {
  const auto pick = [i](const auto& all) { return std::string(all.empty() ? "" : all[i % all.size()]); };
  EndingRecord ending{.kind = rule.kinds.empty() ? "error" : pick(rule.kinds), .type = pick(rule.types)};
  if (!rule.signals.empty()) ending.signal = rule.signals[i % rule.signals.size()];
  ending.problem = "Before " + pick(rule.texts) + " then " + pick(rule.also) + " after";
  return ending;
}

Evidence evidence_of(EndingRecord ending, std::int64_t updates) {
  ending.updates = updates;
  ending.host = "n1";
  ending.time = 1;
  return {.world = 1, .endings = {ending}, .updates = updates, .new_updates = updates};
}

const EndingRecord crash = {.kind = "signal", .signal = SIGSEGV};

observe::RestartRecord before(const EndingRecord& ending, std::int64_t step, int rank = 0) {
  const auto& rule = tools::rule_of(ending);
  return {.rank = rank, .step = step, .signature = tools::signature_of(std::string(rule.error_class), ending)};
}

}  // namespace

TEST_CASE("every alternative of every rule is found by that rule, whatever the letters' case") {
  std::set<std::string_view> ids;
  for (const auto& rule : tools::rules()) {
    CHECK(ids.insert(rule.id).second);
    const auto count = std::max({rule.kinds.size(), rule.signals.size(), rule.types.size(), rule.texts.size(),
                                 rule.also.size(), std::size_t{1}});
    for (std::size_t i = 0; i < count; ++i) {
      auto ending = example_of(rule, i);
      INFO(rule.id << " alternative " << i << ": " << ending.problem << ' ' << ending.type);
      const auto& found = tools::rule_of(ending);
      // Some texts lie within those of a rule of the same class.
      CHECK(found.error_class == rule.error_class);
      CHECK(found.decision == rule.decision);
      std::ranges::transform(ending.problem, ending.problem.begin(), [](unsigned char c) { return std::toupper(c); });
      CHECK(tools::rule_of(ending).id == found.id);
    }
  }
}

TEST_CASE("only these rules stop, and an unknown error never does") {
  std::set<std::string_view> stopping;
  for (const auto& rule : tools::rules()) {
    if (rule.decision == Decision::stop) stopping.insert(rule.id);
  }
  CHECK(stopping == std::set<std::string_view>{"interrupted", "nccl-usage", "disk-full", "quota", "limits",
                                               "no-checkpoint", "checkpoint-mismatch", "permission", "installation",
                                               "missing-file", "usage"});
  for (const int signal : {0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 15, 24, 25, 31, 34, 64}) {
    for (const char* kind : {"error", "signal", "killed", "stall", "exit", "terminate", "of a later release", ""}) {
      const auto found =
          tools::diagnose(evidence_of({.kind = kind, .type = "Unheard", .signal = signal, .problem = "odd"}, 5));
      const bool is_wanted = signal == SIGINT || signal == SIGXCPU || signal == SIGXFSZ;
      INFO(kind << ' ' << signal);
      CHECK((found.decision == Decision::stop) == is_wanted);
    }
  }
}

TEST_CASE("the same error on the same rank at the same step stops, unless it is one of the surroundings") {
  const std::set<std::string_view> passing = {"network", "storage", "device", "node", "killed", "busy", "ended"};
  for (const auto& rule : tools::rules()) {
    if (rule.decision == Decision::stop) continue;
    const auto ending = example_of(rule, 0);
    for (const std::int64_t step : {0, 7}) {
      auto evidence = evidence_of(ending, step);
      evidence.new_updates = 2;  // not an error at the start
      evidence.earlier = {before(ending, step)};
      const auto found = tools::diagnose(evidence);
      INFO(rule.id << " at step " << step);
      CHECK((found.decision == Decision::stop) == !passing.contains(found.error_class));
      CHECK((found.rule == "repeated") == !passing.contains(found.error_class));
    }
  }
}

TEST_CASE("another step, rank or error, or another attempt in between, is no repetition") {
  const auto decision = [](std::vector<observe::RestartRecord> earlier, std::int64_t tolerance = 0) {
    auto evidence = evidence_of(crash, 10);
    evidence.step_tolerance = tolerance;
    evidence.earlier = std::move(earlier);
    return *tools::diagnose(evidence).decision;
  };
  const EndingRecord abort = {.kind = "signal", .signal = SIGABRT};
  CHECK(decision({before(crash, 10)}) == Decision::stop);
  CHECK(decision({before(crash, 9)}) == Decision::retry);
  CHECK(decision({before(crash, 11)}) == Decision::retry);
  CHECK(decision({before(crash, 10, 1)}) == Decision::retry);
  CHECK(decision({before(abort, 10)}) == Decision::retry);
  CHECK(decision({before(crash, 10), before(abort, 10)}) == Decision::retry);
  CHECK(decision({}) == Decision::retry);
  // A rank that could not report its step: its status may be a little behind.
  auto late = before(crash, 12);
  late.step_tolerance = 3;
  CHECK(decision({late}) == Decision::stop);
  late.step = 14;
  CHECK(decision({late}) == Decision::retry);
}

TEST_CASE("equal errors have equal signatures whatever numbers they name") {
  const auto of = [](const char* problem) { return tools::signature_of("c", {.kind = "error", .problem = problem}); };
  CHECK(of("index 17 of 8, at 0x7f") == of("index 3 of 1024, at 0x1f"));
  CHECK(of("index 17") != of("size 17"));
}

TEST_CASE("a program's own error stops at the start of a run only, and only where all ranks that report it agree") {
  const EndingRecord shape = {.kind = "error", .type = "c10::Error", .problem = "shape '[3]' is invalid"};
  CHECK(tools::diagnose(evidence_of(shape, 0)).decision == Decision::stop);
  CHECK(tools::diagnose(evidence_of(shape, 0)).rule == "error-at-start");
  CHECK(tools::diagnose(evidence_of(shape, 1)).decision == Decision::retry);
  auto evidence = evidence_of(shape, 0);
  evidence.endings.push_back({.reporter = 1, .rank = 1, .time = 2, .kind = "error", .problem = "another"});
  CHECK(tools::diagnose(evidence).decision == Decision::retry);
  evidence = evidence_of(shape, 0);
  evidence.updates = evidence.new_updates = 1;  // rank 0 waits in its first update
  CHECK(tools::diagnose(evidence).rule == "error-at-start");
  evidence.endings[0].reporter = evidence.endings[0].rank + 1;
  CHECK(tools::diagnose(evidence).decision == Decision::retry);
  evidence = evidence_of(shape, 0);
  evidence.updates = 300;  // it has resumed
  CHECK(tools::diagnose(evidence).decision == Decision::retry);
  evidence = evidence_of(shape, 0);
  evidence.world = 16;
  evidence.hosts = 4;
  CHECK(tools::diagnose(evidence).decision == Decision::retry);
}

TEST_CASE("consequences yield to causes that are not later than clocks differ") {
  const EndingRecord lost = {
      .reporter = 0, .rank = 0, .time = 10, .kind = "error", .problem = "Connection reset by peer"};
  EndingRecord other = {.reporter = 1, .rank = 1, .time = 11, .kind = "error", .problem = "odd"};
  CHECK(tools::diagnose({.world = 2, .endings = {lost, other}}).rank == 1);
  other.time = 13;
  CHECK(tools::diagnose({.world = 2, .endings = {lost, other}}).rank == 0);
  other.time = 9;
  CHECK(tools::diagnose({.world = 2, .endings = {lost, other}}).rank == 1);
  const auto found = tools::diagnose(
      {.world = 4, .endings = {lost, other}, .unended = {{.rank = 0}, {.rank = 2, .host = "n2"}, {.rank = 3}}});
  REQUIRE(found.chain.size() == 3);
  CHECK(found.chain[0].role == tools::Role::initiating);
  CHECK(found.chain[0].ranks == std::vector<int>{1});
  CHECK(found.chain[1].role == tools::Role::cascade);
  CHECK(found.chain[1].ranks == std::vector<int>{0});
  CHECK(found.chain[2].role == tools::Role::teardown);
  CHECK(found.chain[2].ranks == std::vector<int>{2, 3});
}

TEST_CASE("a run that has not failed") {
  CHECK(tools::diagnose({.outcome = "finished"}).decision == Decision::stop);
  CHECK(tools::diagnose({.outcome = "stopped"}).decision == Decision::retry);
  CHECK(tools::diagnose({.is_running = true}).state == "running");
  CHECK_FALSE(tools::diagnose({.is_running = true}).decision.has_value());
  CHECK(tools::diagnose({}).state == "unknown");
  CHECK_FALSE(tools::diagnose({}).decision.has_value());
}

TEST_CASE("what a launcher reports decides where no rank could") {
  const auto found = [](int code, const char* report, bool has_begun = true) {
    const auto* rule = tools::launcher_rule(code, report, has_begun);
    return rule == nullptr ? std::string_view("none") : rule->id;
  };
  CHECK(found(1, "ORTE has lost communication with a remote daemon.") == "node-lost");
  CHECK(found(205, "") == "node-lost");
  CHECK(found(1, "srun: error: Node failure on n3") == "node-lost");
  CHECK(found(143, "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-28T10:00:00 DUE TO TIME LIMIT ***") ==
        "time-limit");
  CHECK(found(143, "*** STEP 7.0 ON n1 CANCELLED AT 2026-11-28T10:00:00 DUE TO PREEMPTION ***") == "preempted");
  CHECK(found(1, "There are not enough slots available in the system") == "slots");
  CHECK(found(127, "", false) == "not-started");
  CHECK(found(127, "", true) == "none");
  CHECK(found(126, "", false) == "not-started");
  CHECK(found(130, "") == "interrupted");
  CHECK(found(137, "") == "killed");
  CHECK(found(139, "") == "crash");
  CHECK(found(143, "") == "ended-outside");
  CHECK(found(1, "") == "none");
}

TEST_CASE("the kernel's counter of memory kills must have risen") {
  CHECK(tools::shows_oom_kill("x (oom_kill in /a/memory.events: 4 before the run, 5 now); y"));
  CHECK_FALSE(tools::shows_oom_kill("x (oom_kill in /a/memory.events: 4 before the run, 4 now); y"));
  CHECK_FALSE(tools::shows_oom_kill("often the kernel's out-of-memory killer"));
}

TEST_CASE("the diagnosis as text and as JSON") {
  auto evidence =
      evidence_of({.reporter = 3, .rank = 3, .kind = "error", .where = "loss.cpp:7", .problem = "odd\nthing"}, 12);
  evidence.unended = {{.rank = 0}, {.rank = 1}, {.rank = 4}};
  const auto found = tools::diagnose(evidence);
  const auto page = tools::why_view("runs/a", found, 120, false);
  CHECK_THAT(page, ContainsSubstring("runs/a  failed\n"));
  CHECK_THAT(page, ContainsSubstring("decision   retry (rule unknown, class unknown)"));
  CHECK_THAT(page, ContainsSubstring("rank 3 (n1), step 12, loss.cpp:7, at 1970-01-01T00:00:01Z"));
  CHECK_THAT(page, ContainsSubstring("initiating rank 3 (n1): odd thing"));
  CHECK_THAT(page, ContainsSubstring("teardown   ranks 0-1, 4"));
  const auto json = nlohmann::json::parse(tools::why_json({{"runs/a", found}}))["runs"][0];
  CHECK(json["decision"] == "retry");
  CHECK(json["rank"] == 3);
  CHECK(json["step"] == 12);
  CHECK(json["chain"][1]["ranks"] == std::vector<int>{0, 1, 4});
  CHECK(json["suspect_host"].is_null());
}

TEST_CASE("rows of endings have their length for any text, and are read back") {
  EndingRecord ending{.run_id = "r", .reporter = 2, .rank = 3, .world = 4, .host = "n1", .pid = 7, .time = 1.5};
  ending.problem = "odd";
  auto row = to_row(ending);
  CHECK(row.size() == runtime::ending_bytes);
  const auto back = runtime::parse_ending(row);
  REQUIRE(back.has_value());
  CHECK(back->reporter == 2);
  CHECK(back->rank == 3);
  CHECK(back->problem == "odd");
  for (const char c : {'x', '\x01', '\xff', '"'}) {
    ending.problem = ending.where = ending.type = ending.host = ending.run_id = std::string(5000, c);
    row = to_row(ending);
    CHECK(row.size() == runtime::ending_bytes);
    CHECK(runtime::parse_ending(row).has_value());
  }
  CHECK_FALSE(runtime::parse_ending("").has_value());
  CHECK_FALSE(runtime::parse_ending(std::string(runtime::ending_bytes, '\0')).has_value());
  CHECK_FALSE(runtime::parse_ending("{\"run_id\": 3}").has_value());
}
