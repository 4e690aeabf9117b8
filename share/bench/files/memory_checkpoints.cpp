#include <ATen/Parallel.h>

#include <hortator/training/random.hpp>

#include "accelerator/state/snapshot.hpp"
#include "accelerator/training/training.hpp"
#include "bench/bare_step.hpp"
#include "bench/files/disk.hpp"
#include "checkpoint/memory/memory_store.hpp"
#include "runtime/world.hpp"

namespace hortator::bench {
namespace {

constexpr int steps_between = 10;

checkpoint::MemoryNode node_of(const runtime::World& world, const std::filesystem::path& folder) {
  const auto& topology = world.topology();
  return {.folder = folder, .node = topology.node, .nodes = topology.nodes, .is_leader = topology.is_leader()};
}

Result time_memory_checkpoints(Accelerator& accelerator, const Plan& plan, const Workload& workload) {
  set_seed(1, {.device_specific = true});
  const auto batch = make_batch(accelerator, workload);
  auto net = workload.make_net();
  const auto own_optimizer = make_optimizer(workload, *net);
  auto [model, optimizer] = accelerator.prepare(net, *own_optimizer);
  const auto& world = accelerator.world();
  const Scratch scratch(world.comm(), "/dev/shm");
  checkpoint::MemoryStore store(world.comm(), node_of(world, scratch / ""), {});
  const auto step = [&, &model = model, &optimizer = optimizer] {
    accelerator.backward(workload.loss(model(batch.input), batch.target));
    optimizer.step();
    optimizer.zero_grad();
  };
  std::int64_t steps = 0;
  const Sides sides = {.ours =
                           [&] {
                             step();
                             if (++steps % steps_between != 0) return;
                             store.save(accelerator::take_snapshot(accelerator::Training::of(accelerator), 0),
                                        {.updates = steps});
                           },
                       .reference = step,
                       .line_up = [&] { line_up(accelerator); }};
  Result result = {.name = "memory-checkpoints",
                   .params = {{"workload", workload.name},
                              {"steps_between", steps_between},
                              {"ranks", accelerator.num_processes()},
                              {"threads", at::get_num_threads()},
                              {"device", accelerator.device().str()},
                              {"steps", plan.steps}},
                   .reference = "the same step without checkpoints",
                   .timing = time_in_pairs(sides, plan)};
  accelerator.free_memory();
  return result;
}

}  // namespace

std::vector<Result> memory_checkpoints(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  return time_workloads(time_memory_checkpoints, accelerator, plan, selection);
}

}  // namespace hortator::bench
