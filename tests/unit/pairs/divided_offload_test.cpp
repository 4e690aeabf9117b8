// Divided experts whose parameters and moments are offloaded, against memory.
#include <vector>

#include "divided_run.hpp"

using namespace hortator;
using test::append_weights;
using test::check_near;
using test::DividedByExperts;
using test::DividedRun;
using test::on_first;

TEST_CASE("divided experts with offloaded parameters and moments train as in memory") {
  const State state;
  const test::Folder folder(state, "pairs_offload_experts");
  const auto scenario = [](const AcceleratorOptions& options) {
    DividedRun<DividedByExperts> run(options);
    std::vector<double> numbers;
    run.steps(numbers, 0, 4);
    append_weights(numbers, run.accelerator, run.model);
    return numbers;
  };
  const auto alone = on_first(1, scenario);
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    auto options = DividedByExperts::on_two({.zero = {.stage = stage}});
    const auto expected = scenario(options);
    check_near(expected, alone);
    options.zero.offload_optimizer = folder.path() / "moments";
    if (stage == 3) options.zero.offload_parameters = folder.path() / "parameters";
    CHECK(scenario(options) == expected);
  }
}
