#include "observe/status/status_record.hpp"

#include <limits>

#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::observe;

namespace {

observe::RankStatus full() {
  return {.run_id = "run",
          .rank = 3,
          .world = 4,
          .host = "n2",
          .process = "boot pid:[1] 2 3",
          .job = "slurm 12",
          .started = 100.5,
          .time = 200.25,
          .every = 2,
          .phase = "running",
          .loops = {{.title = "epoch \"0\"", .done = 5, .total = 10, .per_second = 2.5}},
          .updates = 77,
          .updates_per_second = 2.5,
          .cpus_used = 1.5,
          .cpus = 2,
          .memory_bytes = 1 << 30,
          .device_bytes = 5,
          .device_peak_bytes = 6,
          .device_used_bytes = 6,
          .device_total_bytes = 80,
          .device_busy = 0.5,
          .communication = 0.25,
          .data_wait = 0.125,
          .save = observe::SaveStatus{.at = 150, .seconds = 1.5, .longest = 2},
          .deadline = 500,
          .values = {{"loss", 0.5}, {"bad", std::numeric_limits<double>::infinity()}},
          .rows = "/somewhere/metrics.jsonl"};
}

}  // namespace

TEST_CASE("a rank's row has the fixed length and reads back unchanged") {
  const auto row = observe::to_row(full());
  CHECK(row.size() == row_bytes);
  CHECK(row.back() == '\n');
  CHECK(row.find('\n') == row.size() - 1);
  const auto read = observe::parse_status(row);
  REQUIRE(read);
  CHECK(observe::to_row(*read) == row);
  CHECK(read->loops.at(0).title == "epoch \"0\"");
  CHECK(read->save->longest == 2);
  CHECK(read->process == "boot pid:[1] 2 3");
  CHECK(read->device_used_bytes == 6);
  CHECK(read->device_peak_bytes == 6);
  CHECK(read->device_total_bytes == 80);
  CHECK(read->device_busy == 0.5);
  CHECK(read->values.at(1).second == std::numeric_limits<double>::infinity());
  CHECK_FALSE(observe::parse_status(row.substr(0, 300)));
  CHECK_FALSE(observe::parse_status(std::string(row_bytes, '\0')));
  CHECK_FALSE(observe::parse_status("{\"rank\":1}"));
}

TEST_CASE("fields without room in a row are dropped") {
  auto status = full();
  for (int i = 0; i < 200; ++i) status.values.emplace_back("number " + std::to_string(i), i);
  auto row = observe::to_row(status);
  CHECK(row.size() == row_bytes);
  auto read = observe::parse_status(row);
  REQUIRE(read);
  CHECK(read->values.size() > 20);
  CHECK(read->rows == status.rows);
  status.rows = std::string(3000, 'x');
  row = observe::to_row(status);
  CHECK(row.size() == row_bytes);
  CHECK(observe::parse_status(row));
}

TEST_CASE("a session's row shows whether the run resumed") {
  const auto fresh = observe::parse_session(observe::to_row(observe::Session{.run_id = "a", .started = 1, .world = 2}));
  REQUIRE(fresh);
  CHECK_FALSE(fresh->resumed_after.has_value());
  const auto resumed = observe::parse_session(
      observe::to_row(observe::Session{.run_id = "a", .started = 1, .world = 2, .resumed_after = 41}));
  REQUIRE(resumed);
  CHECK(resumed->resumed_after == 41);
  CHECK_FALSE(observe::parse_session("{"));
}
