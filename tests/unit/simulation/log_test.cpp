// The rows that trackers get from a simulation: one for each of its steps.
#include <fstream>
#include <nlohmann/json.hpp>

#include "c_run.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

namespace {

constexpr auto log_settings =
    "trackers: [jsonl, csv]\n"
    "models: {net: {type: mlp, layers: [2, 1], optimizer: {type: sgd, lr: 0.1}}}\n";

std::vector<nlohmann::json> rows_of(const std::string& name) {
  std::vector<nlohmann::json> rows;
  std::ifstream file("run_" + name + "/logs/metrics.jsonl");
  for (std::string line; std::getline(file, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

}  // namespace

TEST_CASE("numbers of one step are one row, with the simulation's step", "[simulation]") {
  {
    const CRun run(settings_file("steps", log_settings));
    for (std::int64_t step = 10; step <= 30; step += 10) {
      CHECK(hortator_log_step(run, step, "simulated_time", 0.5 * static_cast<double>(step)) == HORTATOR_OK);
      CHECK(hortator_log_step(run, step, "loss", 1) == HORTATOR_OK);
      CHECK(hortator_log_step(run, step, "mass", 2) == HORTATOR_OK);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const auto rows = rows_of("steps");
  REQUIRE(rows.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(rows[i]["step"] == 10 * (i + 1));
    CHECK(rows[i]["simulated_time"] == 5.0 * static_cast<double>(i + 1));
    CHECK(rows[i]["loss"] == 1);
    CHECK(rows[i]["mass"] == 2);
  }
}

TEST_CASE("without a step, a name that comes again begins the next row", "[simulation]") {
  {
    const CRun run(settings_file("rows", log_settings));
    for (int step = 0; step < 3; ++step) {
      CHECK(hortator_log(run, "loss", step) == HORTATOR_OK);
      CHECK(hortator_log(run, "mass", 2 * step) == HORTATOR_OK);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const auto rows = rows_of("rows");
  REQUIRE(rows.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(rows[i]["step"] == i);
    CHECK(rows[i]["mass"] == 2 * i);
  }
}

TEST_CASE("a row is complete when the run is saved, and the rows of a resumed run follow it", "[simulation]") {
  const auto file = settings_file("resumed_rows", log_settings);
  {
    const CRun run(file);
    run.model("net");
    CHECK(hortator_log_step(run, 4, "loss", 1) == HORTATOR_OK);
    REQUIRE(hortator_save(run, 0, nullptr) == HORTATOR_OK);
    CHECK(hortator_log_step(run, 5, "loss", 2) == HORTATOR_OK);  // lost with the steps after the checkpoint
  }
  {
    const CRun run(file);
    run.model("net");
    REQUIRE(hortator_resume(run) == HORTATOR_OK);
    CHECK(hortator_log_step(run, 5, "loss", 3) == HORTATOR_OK);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const auto rows = rows_of("resumed_rows");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["loss"] == 1);
  CHECK(rows[1]["step"] == 5);
  CHECK(rows[1]["loss"] == 3);
}

TEST_CASE("names of the trackers' own, empty names and negative steps are refused", "[simulation]") {
  const CRun run(settings_file("names", log_settings));
  for (const auto* const name : {"time", "step", ""}) {
    CHECK(hortator_log(run, name, 1) == HORTATOR_USAGE);
    CHECK(hortator_log_step(run, 3, name, 1) == HORTATOR_USAGE);
  }
  CHECK(hortator_log(run, nullptr, 1) == HORTATOR_USAGE);
  CHECK(hortator_log_step(run, -1, "loss", 1) == HORTATOR_USAGE);
  CHECK(error_has("expected a step from 0, got -1"));
  CHECK(hortator_log(run, "loss", 1) == HORTATOR_OK);
}
