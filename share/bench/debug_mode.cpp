// The cost of the debug mode: the same calls with and without it.
#include <algorithm>

#include "bench/collective_cases.hpp"
#include "bench/debug_mode.hpp"
#include "comm/decorators/call_comparison.hpp"
#include "mpi/collectives.hpp"
#include "runtime/world.hpp"

namespace hortator::bench {
namespace {

Result compared(Accelerator& accelerator, const Plan& plan, nlohmann::json params, const std::function<void()>& checked,
                const std::function<void()>& plain) {
  params["ranks"] = accelerator.num_processes();
  params["steps"] = plan.steps;
  return {.name = "debug_mode",
          .params = std::move(params),
          .reference = "without it",
          .timing = time_in_pairs(
              {.ours = checked, .reference = plain, .line_up = [&] { accelerator.wait_for_everyone(); }}, plan)};
}

}  // namespace

std::vector<Result> debug_mode(Accelerator& accelerator, const Plan& plan) {
  const auto& world = accelerator.world().comm();
  const auto host = world.duplicate();
  const auto checked_host = world.duplicate();
  checked_host.check_calls(std::make_shared<comm::CallComparison>(world.duplicate()));
  std::vector<Result> results = {compared(
      accelerator, plan, {{"operation", "all_reduce"}, {"memory", "host value"}, {"bytes", 8}},
      [&] { mpi::all_reduce(checked_host, 1.0, mpi::Op::sum); }, [&] { mpi::all_reduce(host, 1.0, mpi::Op::sum); })};
  const auto tensors = communicator_named("node", world);
  const auto checked_tensors = communicator_named("node in debug mode", world);
  for (const std::int64_t bytes : {std::int64_t{1} << 10, std::int64_t{1} << 20, std::int64_t{25} << 20}) {
    const auto elements = elements_of(bytes, at::kFloat, world.size());
    const auto checked = collective_cases(*checked_tensors, elements, at::kFloat).front();
    const auto plain = collective_cases(*tensors, elements, at::kFloat).front();
    const Plan block{.blocks = plan.blocks, .steps = std::min(plan.steps, steps_for(bytes, plan.steps))};
    results.push_back(compared(accelerator, block,
                               {{"operation", plain.operation}, {"memory", plain.memory}, {"bytes", elements * 4}},
                               checked.run, plain.run));
  }
  return results;
}

}  // namespace hortator::bench
