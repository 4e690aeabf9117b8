#include "tools/watch/watch_view.hpp"

#include <limits>
#include <sstream>

#include "core/text/terminal.hpp"
#include "observe/status/progress_text.hpp"
#include "support/catch.hpp"
#include "tools/watch/runs_view.hpp"
#include "tools/watch/watch_ranks.hpp"

using namespace hortator;
using namespace hortator::tools;

namespace {

observe::RankStatus rank(int number, double communication) {
  return {.run_id = "r",
          .rank = number,
          .world = 4,
          .host = number < 2 ? "n1" : "n2",
          .started = 1000,
          .time = 1099,
          .phase = "running",
          .updates = 500,
          .updates_per_second = 5,
          .cpus_used = 1.5,
          .cpus = 2,
          .memory_bytes = (1 << 30) + number,
          .communication = communication,
          .data_wait = 0.01};
}

WatchFacts four_ranks() {
  WatchFacts facts{.folder = "runs/digits", .ranks = {rank(0, 0.4), rank(1, 0.42), rank(2, 0.05), rank(3, 0.41)}};
  auto& main = facts.ranks.front();
  main.job = "slurm 1234";
  main.loops = {{.title = "epoch 1", .done = 450, .total = 1000, .per_second = 5}};
  main.values = {{"loss", 0.5}, {"lr", 1e-3}};
  main.save = observe::SaveStatus{.at = 1050, .seconds = 1.5, .longest = 4};
  main.deadline = 4700;
  for (int i = 0; i < 100; ++i)
    facts.rows.push_back({.step = i, .time = 1000.0 + i, .values = {{"loss", 1.0 / (i + 1)}}});
  facts.sessions = {{.run_id = "a"}, {.run_id = "r", .resumed_after = 200}};
  facts.checkpoints = {{.name = "checkpoint_4", .at = 1050}, {.name = "checkpoint_3", .at = 900}};
  return facts;
}

}  // namespace

TEST_CASE("the page fits terminals of any width") {
  for (const int columns : {20, 40, 80, 200}) {
    for (const bool colour : {false, true}) {
      const auto page = watch_view(four_ranks(), {.columns = columns, .colour = colour, .now = 1100});
      std::istringstream lines(page);
      for (std::string line; std::getline(lines, line);) CHECK(core::width_of(line) <= columns);
      CHECK((page.find('\x1b') != std::string::npos) == colour);
    }
  }
}

TEST_CASE("the page shows progress, values, resources, checkpoints and stragglers") {
  const auto page = watch_view(four_ranks(), {.columns = 120, .now = 1100});
  for (const char* text :
       {"runs/digits  running  4 ranks on 2 nodes  slurm 1234", "450/1000  5/s  1 min 50 s left", "45% [", "500  5/s",
        "job        ends in 1 h 00 min", "loss       0.5", "lr         0.001", "memory     1.0 GiB per rank",
        "rank 3 (n2)", "CPU        1.5 of 2 per rank", "gradients  32 % of the time", "data       1 %",
        "checkpoint_4, 50 s old; 2 in total", "the last save took 1.5 s, the longest 4.0 s",
        "slowest    rank 2 (n2): the others wait", "restarts   1: after step 200"})
    CHECK_THAT(page, ContainsSubstring(text));
  CHECK_THAT(page, ContainsSubstring("▁") && ContainsSubstring("█"));
  const auto plain = watch_view(four_ranks(), {.columns = 120, .utf8 = false, .now = 1100});
  for (const char c : plain) CHECK(static_cast<unsigned char>(c) < 128);
}

TEST_CASE("devices are shown as far as they are known") {
  CHECK(watch_view(four_ranks(), {.columns = 120, .now = 1100}).find("GPU") == std::string::npos);
  auto facts = four_ranks();
  for (auto& rank : facts.ranks) {
    rank.device_bytes = 12LL << 30;
    rank.device_used_bytes = 14LL << 30;
    rank.device_total_bytes = 80LL << 30;
    rank.device_busy = 0.9;
  }
  facts.ranks[3].device_busy = 0.1;
  facts.ranks[2].device_bytes = 16LL << 30;
  facts.ranks[2].device_used_bytes = 18LL << 30;
  const auto page = watch_view(facts, {.columns = 80, .now = 1100});
  CHECK_THAT(page, ContainsSubstring("GPU memory 13.0 GiB per rank, max 18.0 GiB of 80.0 GiB in use on rank 2 (n2)\n"));
  CHECK_THAT(page, ContainsSubstring("GPU        70 % of the time busy, min 10 % on rank 3 (n2)\n"));

  facts.ranks.resize(1);
  CHECK_THAT(watch_view(facts, {.columns = 120, .now = 1100}),
             ContainsSubstring("GPU memory 12.0 GiB, 14.0 GiB of 80.0 GiB in use\n") &&
                 ContainsSubstring("GPU        90 % of the time busy\n"));
  facts.ranks[0].device_peak_bytes = 13LL << 30;
  CHECK_THAT(watch_view(facts, {.columns = 120, .now = 1100}),
             ContainsSubstring("GPU memory 12.0 GiB (13.0 GiB peak), 14.0 GiB of 80.0 GiB in use\n"));
  facts.ranks[0].device_peak_bytes = 0;
  facts.ranks[0].device_busy = {};
  facts.ranks[0].device_used_bytes = facts.ranks[0].device_total_bytes = 0;
  const auto little = watch_view(facts, {.columns = 120, .now = 1100});
  CHECK_THAT(little, ContainsSubstring("GPU memory 12.0 GiB\n"));
  CHECK(little.find("busy") == std::string::npos);
}

TEST_CASE("failures and silent ranks are shown") {
  auto facts = four_ranks();
  CHECK_THAT(watch_view(facts, {.columns = 120, .now = 1200}), ContainsSubstring("no status for 1 min 41 s"));
  facts.ranks[3].time = 1000;
  CHECK_THAT(watch_view(facts, {.columns = 120, .now = 1100}),
             ContainsSubstring("silent     rank 3 (n2) for 1 min 40 s"));
  facts.failure = "rank 2 (n2): the loss is NaN";
  const auto failed = watch_view(facts, {.columns = 120, .now = 1100});
  CHECK_THAT(failed, ContainsSubstring("runs/digits  failed") && ContainsSubstring("the loss is NaN"));
  CHECK(failed.find("left") == std::string::npos);
  facts.failure = {};
  facts.outcome = "finished";
  CHECK_THAT(watch_view(facts, {.columns = 120, .now = 9e9}), ContainsSubstring("runs/digits  finished"));
}

TEST_CASE("what a narrow page does not hold in one line continues on the next one") {
  auto facts = four_ranks();
  facts.failure = "rank 2 (n2): the loss of this update is not a number, and nothing skips it (see protection)";
  const auto page = watch_view(facts, {.columns = 60, .now = 1100});
  CHECK_THAT(page, ContainsSubstring("           rank 2 (n2): the loss of this update is not a\n") &&
                       ContainsSubstring("           number, and nothing skips it (see protection)\n") &&
                       ContainsSubstring("saved      checkpoint_4, 50 s old; 2 in total; the last save\n") &&
                       ContainsSubstring("           took 1.5 s, the longest 4.0 s\n"));
  const auto runs = runs_view({four_ranks(), facts}, {.columns = 60, .now = 1100});
  CHECK_THAT(runs, ContainsSubstring("1 failed, 1 running") && ContainsSubstring("(see protection)\n"));
}

TEST_CASE("a save of less than a second has its time in milliseconds") {
  auto facts = four_ranks();
  facts.ranks.front().save = observe::SaveStatus{.at = 1099.9, .seconds = 0.005, .longest = 0.049};
  facts.checkpoints = {{.name = "checkpoint_4", .at = 1099.9}};
  CHECK_THAT(watch_view(facts, {.columns = 120, .now = 1100}),
             ContainsSubstring("checkpoint_4, 0 s old; the last save took 5.0 ms, the longest 49.0 ms\n"));
}

TEST_CASE("a run whose processes have gone without a record was killed, at once and for ever") {
  auto facts = four_ranks();
  facts.is_killed = true;
  const auto page = watch_view(facts, {.columns = 120, .now = 1100});
  CHECK_THAT(page, ContainsSubstring("runs/digits  killed"));
  CHECK(page.find("running") == std::string::npos);
  CHECK(page.find(" left") == std::string::npos);
  CHECK(has_ended(facts));
  CHECK(watch_view(facts, {.columns = 120, .now = 9e9}).find("silent") == std::string::npos);
}

TEST_CASE("a run with few records is shown as well") {
  CHECK_THAT(watch_view({.folder = "x"}, {.now = 1}),
             ContainsSubstring("no status") && ContainsSubstring("nothing yet"));
  const WatchFacts rows_only{.folder = "x", .rows = {{.step = 7, .time = 1, .values = {{"loss", 0.25}}}}};
  CHECK_THAT(watch_view(rows_only, {.now = 1}), ContainsSubstring("loss       0.25"));
  WatchFacts single{.folder = "x", .ranks = {rank(0, 0)}};
  single.ranks.front().world = 1;
  const auto page = watch_view(single, {.now = 1100});
  CHECK(page.find("gradients") == std::string::npos);
  CHECK(page.find("per rank") == std::string::npos);
  single.ranks.front().values = {{"loss", std::numeric_limits<double>::quiet_NaN()}};
  CHECK_THAT(watch_view(single, {.now = 1100}), ContainsSubstring("nan"));
}

TEST_CASE("the slowest ranks are those that wait least for the others") {
  CHECK(observe::slowest({rank(0, 0.1)}).empty());
  CHECK(observe::slowest({rank(0, 0.3), rank(1, 0.31), rank(2, 0.29)}).empty());
  const auto slow = observe::slowest({rank(0, 0.5), rank(1, 0.02), rank(2, 0.5), rank(3, 0.2), rank(4, 0.5)});
  REQUIRE(slow.size() == 2);
  CHECK(slow[0].rank == 1);
  CHECK(slow[1].rank == 3);
}

TEST_CASE("rates are readable at any magnitude") {
  CHECK(observe::rate_text(1234.5) == "1234/s");  // not 1.23e+03/s
  CHECK(observe::rate_text(12.34) == "12.3/s");
  CHECK(observe::rate_text(0) == "0/s");
  CHECK(observe::rate_text(0.5) == "2 s each");
}
