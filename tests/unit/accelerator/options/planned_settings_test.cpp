#include "accelerator/options/planned_settings.hpp"

#include <hortator/error.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accelerator/training/launched.hpp"
#include "core/text/text.hpp"
#include "support/catch.hpp"

using namespace hortator;
using accelerator::PlannedSettings;

namespace {

core::Variables variables_of(const std::map<std::string, std::string>& variables) {
  return [variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

// As hortator plan --json prints it, with what matters here.
std::string plan_json(const std::string& best, const std::string& rejected) {
  return R"({"ranks": 8, "command": ["/bin/train", "--steps", "3"], "machine": {"ranks_per_node": 4, "memory": 1073741824},
             "best": [)" +
         best + R"(], "rejected": [)" + rejected + "]}";
}

std::string run_json(const std::string& settings, const std::string& variables, double bytes,
                     const std::string& more = "") {
  return text::concat(R"({"settings": ")", settings, R"(", "variables": [)", variables,
                      R"(], "seconds": 0.25, "memory": {"total": )", bytes, "}", more, "}");
}

}  // namespace

TEST_CASE("the settings of a plan are those of its best run") {
  const auto best = run_json("--tensor 2 --zero-stage 1", R"("HORTATOR_TENSOR=2", "HORTATOR_ZERO_STAGE=1")", 524288);
  const auto planned = accelerator::settings_in_plan(plan_json(best + "," + run_json("", "", 1), ""));
  CHECK(planned.variables ==
        std::map<std::string, std::string>{{"HORTATOR_TENSOR", "2"}, {"HORTATOR_ZERO_STAGE", "1"}});
  CHECK(planned.summary ==
        "parallel = auto: --tensor 2 --zero-stage 1 on 8 ranks, predicted 250.0 ms an update and 512.0 KiB of the 1.0 "
        "GiB of a rank");
  const auto none = accelerator::settings_in_plan(plan_json(run_json("", "", 1024), ""));
  CHECK(none.variables.empty());
  CHECK_THAT(none.summary, ContainsSubstring("no settings on 8 ranks"));
}

TEST_CASE("where nothing fits, the run that needs least is named") {
  const auto rejected = run_json("--zero-stage 1", "", 4e9) + "," + run_json("--zero-stage 3", "", 2147483648.0) + "," +
                        run_json("--tensor 8", "", 0, R"(, "problem": "it fails")");
  CHECK_THROWS_WITH(accelerator::settings_in_plan(plan_json("", rejected)),
                    ContainsSubstring("nothing fits into the 1.0 GiB of each of 8 ranks; the smallest that was "
                                      "rehearsed, with --zero-stage 3, needs 2.0 GiB"));
  CHECK_THROWS_WITH(accelerator::settings_in_plan(plan_json("", "")), ContainsSubstring("of each of 8 ranks ("));
  for (const auto* other : {"", "{}", "[1]", R"({"best": []})", R"({"best": [{}], "rejected": [], "machine": {}})",
                            R"({"best": [], "rejected": [], "machine": 3})",
                            R"({"best": [{"variables": [7]}], "rejected": [], "machine": {}})"}) {
    CHECK_THROWS_WITH(accelerator::settings_in_plan(other), ContainsSubstring("not one of hortator plan"));
  }
}

TEST_CASE("a recorded plan is for one command on as many ranks and nodes") {
  const auto json = plan_json(run_json("", "", 1), "");
  const std::vector<std::string> command = {"/bin/train", "--steps", "3"};
  CHECK(accelerator::is_plan_of(json, command, 8, 4));
  CHECK(!accelerator::is_plan_of(json, command, 4, 4));
  CHECK(!accelerator::is_plan_of(json, command, 8, 8));
  CHECK(!accelerator::is_plan_of(json, {"/bin/train", "--steps", "4"}, 8, 4));
  for (const auto* other : {"", "{}", R"({"ranks": 8, "machine": 3})", R"({"ranks": "8", "machine": {}})"})
    CHECK(!accelerator::is_plan_of(other, command, 8, 4));
}

TEST_CASE("planned settings fill what is not set, and nothing else") {
  const PlannedSettings planned{.variables = {{"HORTATOR_TENSOR", "2"}, {"HORTATOR_ZERO_STAGE", "1"}}};
  const auto variables = accelerator::with_settings(variables_of({{"HORTATOR_ZERO_STAGE", "3"}}), planned);
  CHECK(variables("HORTATOR_TENSOR") == "2");
  CHECK(variables("HORTATOR_ZERO_STAGE") == "3");
  CHECK(!variables("HORTATOR_CONTEXT"));
  const auto filled = accelerator::launched({}, accelerator::with_settings(variables_of({}), planned)).options;
  CHECK(filled.parallel.tensor == 2);
  CHECK(filled.zero.stage == 1);
  CHECK(accelerator::launched({.parallel = {.tensor = 4}}, variables).options.parallel.tensor == 4);
}

TEST_CASE("a launch asks for a plan, and sets nothing that the plan chooses") {
  CHECK(!accelerator::launched({}, variables_of({})).options.parallel.automatic);
  CHECK(!accelerator::launched({}, variables_of({{"HORTATOR_PARALLEL", "given"}})).options.parallel.automatic);
  CHECK(accelerator::launched({}, variables_of({{"HORTATOR_PARALLEL", "auto"}})).options.parallel.automatic);
  CHECK(accelerator::launched({.parallel = {.automatic = true}}, variables_of({})).options.parallel.automatic);
  CHECK_THROWS_WITH(accelerator::launched({}, variables_of({{"HORTATOR_PARALLEL", "best"}})),
                    ContainsSubstring("HORTATOR_PARALLEL: expected one of given, auto, got 'best'"));
  CHECK_NOTHROW(accelerator::refuse_beside_plan(variables_of({{"HORTATOR_SEED", "1"}, {"HORTATOR_TENSOR", ""}})));
  for (const auto* name : {"TENSOR", "CONTEXT", "PIPELINE", "PIPELINE_SCHEDULE", "MICRO_BATCHES", "ZERO_STAGE",
                           "OFFLOAD_OPTIMIZER", "OFFLOAD_PARAMETERS", "RECOMPUTE_LAYERS"}) {
    const auto variable = text::concat("HORTATOR_", name);
    CHECK_THROWS_WITH(accelerator::refuse_beside_plan(variables_of({{variable, "2"}})),
                      ContainsSubstring("parallel = auto with " + variable + "=2"));
  }
}
