#include "runtime/identity/outcome.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("the record says whether the run is to go on, with the code that its program gives") {
  const runtime::Run run{.id = "one", .world_size = 4};
  const auto finished = nlohmann::json::parse(runtime::outcome_record(run, false));
  CHECK(finished["outcome"] == "finished");
  CHECK(finished["exit_code"] == 0);
  CHECK(finished["run_id"] == "one");
  CHECK(finished["world_size"] == 4);
  CHECK_FALSE(finished.contains("remark"));
  CHECK_FALSE(finished.contains("energy"));
  const auto measured = nlohmann::json::parse(
      runtime::outcome_record(run, false, {}, {.joules = 7.2e6, .samples = 100, .source = "powercap"}))["energy"];
  CHECK(measured["joules"] == 7.2e6);
  CHECK(measured["kwh"] == 2);
  CHECK(measured["joules_per_sample"] == 7.2e4);
  CHECK(measured["source"] == "powercap");
  const auto no_samples =
      nlohmann::json::parse(runtime::outcome_record(run, true, {}, {.joules = 1, .source = "device"}))["energy"];
  CHECK_FALSE(no_samples.contains("joules_per_sample"));
  const auto again = nlohmann::json::parse(runtime::outcome_record(run, false, 192));
  CHECK(again["outcome"] == "finished");
  CHECK(again["remark"] == "already finished at step 192: no update was left to do");
  const auto stopped = nlohmann::json::parse(runtime::outcome_record(run, true));
  CHECK(stopped["outcome"] == "stopped");
  CHECK(stopped["exit_code"] == 75);
}
