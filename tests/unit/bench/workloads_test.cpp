#include "bench/workloads.hpp"

#include <map>

#include "support/catch.hpp"

using namespace hortator::bench;

// A comparison with another framework counts only when both train the same model.
TEST_CASE("the workloads have the sizes of the models that time other frameworks") {
  const std::map<std::string, std::int64_t> parameters = {
      {"mlp-small", 26'122},     {"mlp-comm", 8'396'800},     {"mlp-mixed", 16'785'408}, {"mlp-big", 134'250'496},
      {"bert-mini", 11'170'562}, {"resnet18-32", 11'173'962}, {"gpt-124m", 124'439'808}};
  REQUIRE(workloads().size() == parameters.size());
  for (const auto& workload : workloads()) {
    INFO(workload.name);
    const auto net = workload.make_net();
    std::int64_t count = 0;
    for (const auto& parameter : net->parameters()) count += parameter.numel();
    CHECK(count == parameters.at(workload.name));
    if (workload.name == "gpt-124m") continue;  // a step of it takes minutes
    const auto loss = workload.loss(net->forward(workload.make_input()), workload.make_target());
    loss.backward();
    CHECK(loss.dim() == 0);
    for (const auto& parameter : net->parameters()) CHECK(parameter.grad().defined());
  }
}
