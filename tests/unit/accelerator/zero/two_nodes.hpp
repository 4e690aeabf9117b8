#pragma once

#include <mpi.h>

#include <array>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "integration/scale/traffic.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

// Training over two nodes, as MPI reports them, with both back ends that work between nodes.

namespace hortator::test {

inline constexpr std::array<const char*, 2> back_ends = {"node", "mpi"};

/// Selects the communicator and makes MPI report two nodes, for the following Accelerators. With three ranks, the
/// second node has one.
inline void use_communicator(const char* communicator) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  scale::pretend_nodes_of((ranks + 1) / 2);
  setenv("HORTATOR_COMMUNICATOR", communicator, 1);
}

struct NodesPlan {
  int accumulation = 1;
  double max_norm = 0;
  bool detours = false;
  at::ScalarType type = at::kFloat;
  Precision precision = Precision::no;
};

struct NodesOutcome {
  std::vector<at::Tensor> parameters = {};
  std::vector<at::Tensor> buffers = {};
  std::vector<double> losses = {};
  std::vector<double> norms = {};
};

inline NodesOutcome train_over_nodes(const ZeroConfig& zero, const NodesPlan& plan = {}) {
  Accelerator accelerator({.mixed_precision = plan.precision,
                           .gradient_accumulation_steps = plan.accumulation,
                           .ddp = {.bucket_cap_mb = 3e-3, .find_unused_parameters = plan.detours},
                           .zero = zero});
  CHECK(accelerator.num_nodes() == 2);
  Shardable net(plan.type);
  auto adamw = make_adamw(net);
  auto [model, optimizer] = accelerator.prepare(net, *adamw);
  NodesOutcome outcome;
  for (int step = 0; step < 5 * plan.accumulation; ++step) {
    auto micro_step = accelerator.accumulate(model);
    const auto y = model(batch(accelerator, step, plan.type), !plan.detours || step % 2 == 0);
    const auto loss = at::mse_loss(y, at::full_like(y, 0.3));
    outcome.losses.push_back(loss.item<double>());
    accelerator.backward(loss);
    if (plan.max_norm > 0 && accelerator.sync_gradients())
      outcome.norms.push_back(accelerator.clip_grad_norm_(model.parameters(), plan.max_norm).item<double>());
    optimizer.step();
    optimizer.zero_grad();
  }
  outcome.parameters = copies_of(*net);
  for (const auto& buffer : net->buffers()) outcome.buffers.push_back(buffer.clone());
  accelerator.wait_for_everyone();
  return outcome;
}

inline void check_same(const NodesOutcome& outcome, const NodesOutcome& expected) {
  CHECK(are_equal(outcome.parameters, expected.parameters));
  CHECK(are_equal(outcome.buffers, expected.buffers));
  CHECK(outcome.losses == expected.losses);
  CHECK(outcome.norms == expected.norms);
}

inline const std::map<std::string, NodesPlan> plans = {
    {"plain", {}},
    {"accumulated and clipped", {.accumulation = 3, .max_norm = 0.05}},
    {"with parameters that are not used", {.detours = true}},
    {"in bf16, with copies in fp32", {.type = at::kBFloat16}},
    {"computing in bf16", {.precision = Precision::bf16}},
};

}  // namespace hortator::test
