#include <cmath>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>
#include <random>

#include "support/catch.hpp"
#include "tools/trace/clock_alignment.hpp"
#include "tools/trace/collectives.hpp"
#include "tools/trace/flight_trace.hpp"
#include "tools/trace/merged_trace.hpp"
#include "tools/trace/trace_times.hpp"

using namespace hortator;
using namespace hortator::tools;
using Event = nlohmann::ordered_json;

namespace {

struct World {
  std::vector<double> clock_errors = {};  ///< of each host, in microseconds
  std::vector<std::size_t> host_of = {};  ///< of each rank
};

/// What ranks record that meet `rounds` times: each enters at some time and leaves soon after the last has entered.
std::vector<ClockOfRank> recorded(const World& world, int rounds, double jitter) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> late(0, jitter);
  std::vector<ClockOfRank> ranks(world.host_of.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank].host = "n" + std::to_string(world.host_of[rank]);
  for (int round = 1; round <= rounds; ++round) {
    std::vector<double> entered;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) entered.push_back(1000.0 * round + late(random));
    const double all_are_in = *std::ranges::max_element(entered);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const double error = world.clock_errors[world.host_of[rank]];
      ranks[rank].meetings.push_back({.group = "g",
                                      .sequence = static_cast<std::uint64_t>(round),
                                      .begin = entered[rank] + error,
                                      .end = all_are_in + 1 + late(random) / 10 + error});
    }
  }
  return ranks;
}

Event collective_event(const char* name, int sequence, double begin, double length, const char* backend = "node") {
  return {{"ph", "X"},
          {"name", "record_param_comms"},
          {"ts", begin},
          {"dur", length},
          {"args",
           {{"Collective name", name},
            {"In msg nelems", 4096},
            {"Group size", 2},
            {"Process Group Name", "ab12"},
            {"Process Group Description", std::string("hortator ") + backend + " #" + std::to_string(sequence)}}}};
}

Event operator_event(const char* name, double begin, double length, int thread = 1) {
  return {{"ph", "X"}, {"cat", "cpu_op"}, {"name", name}, {"ts", begin}, {"dur", length}, {"pid", 10}, {"tid", thread}};
}

std::vector<TracedCollective> read(const std::vector<Event>& events) {
  CollectiveReader reader;
  for (const auto& event : events) reader.take(event);
  return reader.collectives();
}

}  // namespace

TEST_CASE("clocks are aligned by the collectives of their ranks") {
  const World world{.clock_errors = {0, 3.2e6, -51.5, 7e9}, .host_of = {0, 0, 1, 1, 2, 3}};
  for (const double jitter : {0.0, 5.0, 200.0}) {
    INFO("jitter " << jitter);
    const auto ranks = recorded(world, 200, jitter);
    const auto alignment = align_clocks(ranks);
    CHECK(alignment.contradiction <= 1e-3);
    REQUIRE(alignment.offsets.size() == world.host_of.size());
    CHECK(alignment.offsets[0] == 0);
    CHECK(alignment.offsets[1] == 0);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const double wanted = -world.clock_errors[world.host_of[rank]];
      CHECK(alignment.offsets[rank] == Approx(wanted).margin(alignment.uncertainty / 2 + 1e-3).epsilon(0));
    }
    CHECK(alignment.uncertainty < 10 + jitter / 2);
  }
}

TEST_CASE("hosts that have only met through others are aligned") {
  std::vector<ClockOfRank> ranks(3);
  for (std::size_t rank = 0; rank < 3; ++rank) ranks[rank].host = "n" + std::to_string(rank);
  ranks[0].meetings = {{.group = "a", .sequence = 1, .begin = 10, .end = 12}};
  ranks[1].meetings = {{.group = "a", .sequence = 1, .begin = 110, .end = 112},
                       {.group = "b", .sequence = 1, .begin = 120, .end = 122}};
  ranks[2].meetings = {{.group = "b", .sequence = 1, .begin = 20, .end = 22}};
  const auto alignment = align_clocks(ranks);
  CHECK(alignment.offsets[1] == Approx(-100).margin(2));
  CHECK(alignment.offsets[2] == Approx(0).margin(4));
  CHECK(alignment.contradiction == 0);
}

TEST_CASE("clocks that run at different rates are aligned as well as they can be, and the rest is reported") {
  std::vector<ClockOfRank> ranks(2);
  ranks[0].host = "n0";
  ranks[1].host = "n1";
  for (int i = 0; i < 10; ++i) {
    const double time = 1e6 * i;
    const auto sequence = static_cast<std::uint64_t>(i + 1);
    ranks[0].meetings.push_back({.group = "g", .sequence = sequence, .begin = time, .end = time + 2});
    // 10 microseconds a second
    ranks[1].meetings.push_back(
        {.group = "g", .sequence = sequence, .begin = time + 10.0 * i, .end = time + 10.0 * i + 2});
  }
  const auto alignment = align_clocks(ranks);
  CHECK(alignment.offsets[1] == Approx(-45).margin(1));
  CHECK(alignment.contradiction == Approx(43).margin(1));
}

TEST_CASE("a host that has met no other is an error that names it") {
  std::vector<ClockOfRank> ranks(2);
  ranks[0] = {.host = "here", .meetings = {{.group = "a", .sequence = 1, .begin = 1, .end = 2}}};
  ranks[1] = {.host = "there", .meetings = {{.group = "b", .sequence = 1, .begin = 1, .end = 2}}};
  CHECK_THROWS_WITH(align_clocks(ranks), ContainsSubstring("The clock of there cannot be compared with that of here"));
  ranks[1].host = "here";
  CHECK(align_clocks(ranks).offsets == std::vector<double>{0, 0});
}

TEST_CASE("a collective and the wait for it are joined") {
  const auto list = read({collective_event("all_reduce", 4, 100, 5), collective_event("all_gather", 5, 107, 1),
                          collective_event("wait", 4, 120, 30), collective_event("wait", 3, 1, 1),
                          operator_event("aten::mm", 1, 2), Event{{"name", "record_param_comms"}, {"dur", 1}}});
  REQUIRE(list.size() == 2);
  CHECK(list[0].name == "all_reduce");
  CHECK(list[0].backend == "node");
  CHECK(list[0].sequence == 4);
  CHECK(list[0].bytes == 4096);
  CHECK(list[0].size == 2);
  CHECK(list[0].over() == 150);
  CHECK(list[1].over() == 108);
}

TEST_CASE("only collectives that no rank leaves before all have entered bound clocks") {
  const auto names = [](const std::vector<Event>& events) {
    std::vector<std::uint64_t> numbers;
    for (const auto& meeting : meetings_of(read(events))) numbers.push_back(meeting.sequence);
    return numbers;
  };
  CHECK(names({collective_event("broadcast", 1, 0, 1), collective_event("exchange", 2, 2, 1)}).empty());
  CHECK(names({collective_event("all_reduce", 1, 0, 1, "nccl")}).empty());
  CHECK(names({collective_event("barrier", 1, 0, 1), collective_event("all_gather", 2, 2, 1)}) ==
        std::vector<std::uint64_t>{1, 2});
  // One that is waited for later: the last wait is not in the recording.
  CHECK(names({collective_event("all_reduce", 1, 0, 1), collective_event("wait", 1, 5, 1),
               collective_event("all_reduce", 2, 8, 1)}) == std::vector<std::uint64_t>{1});
}

TEST_CASE("ranges are united and compared") {
  const auto one = united({{5, 9}, {0, 2}, {1, 3}, {9, 10}, {20, 20}});
  REQUIRE(one.size() == 2);
  CHECK(length_of(one) == 8);
  CHECK(common_length(one, {{2, 6}, {9, 30}}) == 3);
  CHECK(common_length(one, {}) == 0);
}

TEST_CASE("the times of a rank: computing, under way, overlapped, waiting") {
  OperatorReader operators;
  for (const auto& event : {operator_event("aten::linear", 0, 100), operator_event("aten::addmm", 10, 50),
                            operator_event("aten::mm", 105, 20, 2), operator_event("aten::add", 200, 10)})
    operators.take(event);
  operators.take(Event{{"ph", "X"}, {"cat", "user_annotation"}, {"name", "ProfilerStep#3"}, {"ts", 0}, {"dur", 9}});
  const auto outermost = operators.operators();
  REQUIRE(outermost.size() == 3);
  CHECK(outermost[0].name == "aten::linear");
  const auto mine = read({collective_event("all_reduce", 1, 90, 5), collective_event("wait", 1, 120, 30)});
  const auto other = read({collective_event("all_reduce", 1, 140, 5), collective_event("wait", 1, 145, 6)});
  const auto joined = join({mine, other});
  const auto times = times_of(mine, operators, joined, 0);
  CHECK(times.computing == 130);
  CHECK(times.communicating == 60);
  CHECK(times.overlapping == 30);
  CHECK(times.waiting == 20);
  CHECK(times_of(mine, operators, joined, 0, 1000).overlapping == 0);
  CHECK(times.last == 0);
  CHECK(times.steps == 1);
  CHECK(times_of(other, OperatorReader(), joined, 1).last == 1);
  CHECK(times_of(other, OperatorReader(), joined, 1).waiting == 0);
  CHECK(times_table({times}).find("50 %") != std::string::npos);
}

TEST_CASE("events of ranks get processes and arrows of their own, and the common clock") {
  RankEvents events(3, "n1", 1000);
  Event name = {{"ph", "M"}, {"name", "process_name"}, {"pid", 4711}, {"args", {{"name", "train"}}}};
  Event call = {{"ph", "X"}, {"name", "aten::mm"}, {"pid", 4711}, {"tid", 9}, {"ts", 1.5}, {"dur", 2}};
  Event arrow = {{"ph", "s"}, {"id", 7}, {"pid", "Traces"}, {"ts", 2}};
  for (auto* event : {&name, &call, &arrow}) events.move(*event);
  CHECK(name["args"]["name"] == "rank 3 (n1): train");
  CHECK(call["ts"] == 1001.5);
  CHECK(call["pid"] == name["pid"]);
  CHECK(call["tid"] == 9);
  CHECK(arrow["pid"] != name["pid"]);
  Event of_other_rank = {{"ph", "s"}, {"id", 7}, {"pid", 4711}, {"ts", 2}};
  RankEvents(4, "n1", 0).move(of_other_rank);
  CHECK(of_other_rank["id"] != arrow["id"]);
  CHECK(of_other_rank["pid"] != name["pid"]);
}

TEST_CASE("a collective under way has its group's ranks and the last one") {
  const auto mine = read({collective_event("all_reduce", 1, 90, 5)});
  const auto other = read({collective_event("all_reduce", 1, 140, 5)});
  const auto events = under_way_events(0, mine, join({mine, other}));
  REQUIRE(events.size() == 2);
  CHECK(events[0]["ph"] == "b");
  CHECK(events[0]["args"]["bytes"] == 4096);
  CHECK(events[0]["args"]["ranks"] == std::vector<int>{0, 1});
  CHECK(events[0]["args"]["entered last"] == 1);
  CHECK(events[0]["args"]["entered before the last (us)"] == 50);
  CHECK(events[1]["ph"] == "e");
  CHECK(events[1]["ts"] == 95);
  CHECK(events[1]["id"] == events[0]["id"]);
}

TEST_CASE("a rank without a device is shown as one: threads and collectives are streams") {
  const auto events = device_events(
      2, read({collective_event("all_reduce", 1, 90, 5)}),
      {{.name = "aten::mm", .thread = 77, .time = {1, 3}}, {.name = "aten::add", .thread = 78, .time = {2, 3}}});
  REQUIRE(events.size() == 6);  // each kernel and its launch
  for (std::size_t i = 0; i < events.size(); i += 2) {
    CHECK(events[i]["cat"] == "kernel");
    CHECK(events[i + 1]["name"] == "cudaLaunchKernel");
    CHECK(events[i + 1]["args"]["correlation"] == events[i]["args"]["correlation"]);
  }
  CHECK(events[0]["args"]["stream"] != events[2]["args"]["stream"]);
  CHECK(events[0]["args"]["correlation"] != events[2]["args"]["correlation"]);
  CHECK(events[4]["name"] == "ncclKernel_all_reduce");
  CHECK(events[4]["args"]["stream"] != events[0]["args"]["stream"]);
  CHECK(events[4]["args"]["bytes"] == 4096);
}

TEST_CASE("the flight shows how far each rank of a group has come") {
  const auto stay = [](int rank, std::uint64_t sequence, double begun, double ended) {
    return runtime::FlightRecord{.rank = rank,
                                 .name = "all_reduce",
                                 .bytes = 64,
                                 .group = "ab",
                                 .size = 3,
                                 .sequence = sequence,
                                 .begun = begun,
                                 .ended = ended};
  };
  // Rank 0 is in 8, rank 1 waits for 7 after it has started 8, rank 2 has left 6.
  const std::vector<runtime::FlightRecord> flight = {stay(0, 7, 10, 11),   stay(0, 8, 12, 0), stay(1, 7, 10, 10.5),
                                                     stay(1, 8, 11, 11.5), stay(1, 7, 12, 0), stay(2, 6, 8, 9)};
  const auto progress = progress_of(flight);
  REQUIRE(progress.size() == 3);
  CHECK(progress[0].sequence == 8);
  CHECK(progress[0].is_inside);
  CHECK(progress[1].sequence == 7);
  CHECK(progress[1].is_inside);
  CHECK(progress[2].sequence == 6);
  CHECK_FALSE(progress[2].is_inside);
  const auto table = flight_table(flight);
  CHECK(table.find("group ab of 3 ranks: its ranks are not in the same collective") != std::string::npos);
  CHECK(table.find("rank 2: left all_reduce #6 (64 B)") != std::string::npos);
  CHECK(flight_table({stay(0, 7, 10, 0), stay(1, 7, 10, 0)}).find("ranks 0-1: in all_reduce #7") != std::string::npos);
  CHECK(flight_table({stay(0, 7, 10, 0)}).find("2 ranks of it: no record") != std::string::npos);
  CHECK(flight_table({}) == "no collectives are recorded\n");
  CHECK(flight_events(flight).size() == 3 + flight.size());
}
