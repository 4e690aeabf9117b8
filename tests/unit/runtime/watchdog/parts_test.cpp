#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>

#include "core/process.hpp"
#include "runtime/watchdog/process.hpp"
#include "runtime/watchdog/slot.hpp"
#include "runtime/watchdog/stall_files.hpp"
#include "runtime/watchdog/time_limit.hpp"
#include "runtime/watchdog/wait_clock.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using runtime::Claim;
using runtime::RankLife;
using runtime::RankRecord;
using runtime::WaitClock;
namespace fs = std::filesystem;

namespace {

core::Variables variable(const std::string& value) {
  return [value](const char* name) -> std::optional<std::string> {
    return std::string_view(name) == "HORTATOR_TIMEOUT" ? std::optional(value) : std::nullopt;
  };
}

activity::View seen(std::uint64_t visit, bool inside, std::uint64_t family = 1) {
  return {.threads = {{.visit = visit, .operation = {.family = family, .sequence = 3}, .inside = inside}}};
}

double waited(const WaitClock& clock) { return clock.longest() ? clock.longest()->waited.count() : -1; }

}  // namespace

TEST_CASE("the time limit comes from the argument, the environment or is ten minutes, and invalid times are refused") {
  const core::Variables none = [](const char*) { return std::nullopt; };
  CHECK(runtime::collective_timeout({}, none) == 10min);
  CHECK(runtime::collective_timeout({}, variable("")) == 10min);
  CHECK(runtime::collective_timeout({}, variable("30s")) == 30s);
  CHECK(runtime::collective_timeout(5s, variable("30s")) == 5s);
  CHECK_THROWS_WITH(runtime::collective_timeout({}, variable("soon")), ContainsSubstring("HORTATOR_TIMEOUT=soon"));
  CHECK_THROWS_AS(runtime::collective_timeout({}, variable("0s")), UsageError);
  CHECK_THROWS_AS(runtime::collective_timeout(0ms, none), UsageError);
}

TEST_CASE("only time in which the watching thread ran counts as waiting") {
  WaitClock clock(1, 2s);
  clock.look(seen(2, false), 1s);
  CHECK(waited(clock) == -1);
  clock.look(seen(4, true), 1s);
  CHECK(waited(clock) == 0);
  clock.look(seen(4, true), 1.5s);
  CHECK(waited(clock) == 1.5);
  clock.look(seen(4, true), 3600s);  // the job was suspended
  CHECK(waited(clock) == 3.5);
  clock.look(seen(6, true), 1s);  // another collective
  CHECK(waited(clock) == 0);
  clock.look(seen(6, false), 1s);
  CHECK(waited(clock) == -1);
}

TEST_CASE("the longest wait of all threads is seen, of its own family only") {
  WaitClock clock(1, 10s);
  activity::View view;
  view.threads = {{.visit = 2, .operation = {.family = 1, .sequence = 1}, .inside = true},
                  {.visit = 2, .operation = {.family = 1, .sequence = 2}, .inside = true},
                  {.visit = 2, .operation = {.family = 9, .sequence = 3}, .inside = true}};
  clock.look(view, 1s);
  view.threads[0].visit = 4;
  clock.look(view, 1s);
  REQUIRE(clock.longest());
  CHECK(clock.longest()->operation.sequence == 2);
  clock.look({.threads = {{}, {}, {}}}, 1s);
  clock.look({.threads = {{}, {}, {}}}, 1s);
  CHECK_FALSE(clock.longest());
  CHECK(clock.outside() == 1s);
}

TEST_CASE("slots survive JSON, and invalid JSON gives none") {
  const RankRecord slot = {
      .rank = 3,
      .local_rank = 1,
      .host = "n1",
      .pid = 77,
      .start = 99,
      .life = RankLife::stopped,
      .phase = activity::Phase::checkpoint,
      .wait =
          RankRecord::Wait{
              .name = "barrier", .bytes = 5, .communicator = ~0ULL, .sequence = 6, .size = 7, .seconds = 1.5},
      .has_one_thread = true,
      .outside_seconds = 2.5,
      .device = RankRecord::OnDevice{.name = "all_reduce", .communicator = ~1ULL, .sequence = 8, .is_its_turn = true},
      .standings = {{.communicator = 1, .entered = 2}},
      .note = "no gradient",
      .stack = {"a", "b"}};
  CHECK((runtime::slot_from_json(to_json(slot)) == slot));
  CHECK((runtime::slots_from_json(to_json(std::vector{slot, RankRecord{}})) == std::vector{slot, RankRecord{}}));
  const auto text = to_json(slot);
  CHECK_FALSE(runtime::slot_from_json(text.substr(0, text.size() / 2)));
  CHECK(runtime::slots_from_json("").empty());
}

TEST_CASE("a slot that is too long drops its stack, then communicators, never the one that it waits in") {
  RankRecord slot = {.rank = 3, .wait = RankRecord::Wait{.name = "barrier", .communicator = 7, .sequence = 6}};
  for (std::uint64_t communicator = 0; communicator < 1000; ++communicator)
    slot.standings.push_back({.communicator = communicator, .entered = 1});
  const auto whole = to_json(slot).size();
  slot.stack.assign(100, "a function");
  const auto without_stack = runtime::slot_from_json(to_json_within(slot, whole));
  REQUIRE(without_stack);
  CHECK(without_stack->stack.empty());
  CHECK(without_stack->standings.size() == 1000);
  for (const std::size_t room : {whole - 1, whole / 5, whole / 20}) {
    const auto message = to_json_within(slot, room);
    CHECK(message.size() <= room);
    const auto shorter = runtime::slot_from_json(message);
    REQUIRE(shorter);
    CHECK((shorter->wait == slot.wait));
    const auto is_awaited = [](const auto& standing) { return standing.communicator == 7; };
    CHECK(std::ranges::any_of(shorter->standings, is_awaited));
  }
}

TEST_CASE("the process that traces another is read from /proc") {
  CHECK(runtime::parse_tracer("Name:\tx\nTracerPid:\t42\nUid:\t0\n") == 42);
  CHECK(runtime::parse_tracer("Name:\tx\n") == 0);
}

TEST_CASE("running, stopped and vanished processes, and a later one of the same number") {
  const auto child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto start = core::process_facts(child)->start;
  const auto becomes = [&](RankLife life) {
    for (int i = 0; i < 200 && runtime::life_of(child, start) != life; ++i) usleep(10000);
    return runtime::life_of(child, start) == life;
  };
  CHECK(becomes(RankLife::running));
  CHECK(runtime::life_of(child, start + 1) == RankLife::vanished);
  kill(child, SIGSTOP);
  CHECK(becomes(RankLife::stopped));
  kill(child, SIGKILL);
  CHECK(becomes(RankLife::vanished));  // a zombie, until it is waited for
}

TEST_CASE("the first to announce a stall collects one answer a node, and nothing stays") {
  const test::OwnFolder folder("stall");
  const runtime::StallFiles files(folder.path / "a", "run-1");
  CHECK_FALSE(files.announcer());
  CHECK(files.announce(2) == Claim::won);
  CHECK(files.announce(3) == Claim::lost);
  CHECK(files.announcer() == 2);
  CHECK_FALSE(runtime::StallFiles(folder.path / "a", "run-2").announcer());
  CHECK_FALSE(files.answer_of(1));
  files.answer(1, "first");
  files.answer(1, "second");
  CHECK(files.answer_of(1) == "first");
  std::ofstream(folder.path / "a" / ".stall-other") << "not ours";
  files.remove(4);
  CHECK(std::distance(fs::directory_iterator(folder.path / "a"), fs::directory_iterator()) == 1);
  files.answer(1, "too late");
  CHECK(std::distance(fs::directory_iterator(folder.path / "a"), fs::directory_iterator()) == 1);
}

TEST_CASE("a stall that cannot be announced is reported as such") {
  const test::OwnFolder folder("stall");
  fs::create_directories(folder.path);
  std::ofstream(folder.path / "file") << "in the way";
  const runtime::StallFiles files(folder.path / "file", "run-1");
  CHECK(files.announce(0) == Claim::impossible);
  CHECK_FALSE(files.announcer());
}
