// The Accelerator on the simulated device: bit for bit the CPU's losses and parameters, whenever work runs.
#include <torch/nn/modules/container/sequential.h>

#include <cstdlib>

#include "../accelerator/fixtures.hpp"
#include "machine/device/memory.hpp"
#include "sim_fixture.hpp"

using namespace hortator;
using test::Net;
using test::Rows;

namespace {

struct Run {
  std::string name;
  AcceleratorOptions options = {};
  bool adamw = true;
  double momentum = 0.9;  ///< of SGD
};

ZeroConfig zero(int stage, const std::string& home = {}) {
  ZeroConfig options;
  options.stage = stage;
  options.offload_optimizer = home;
  if (stage == 3) options.offload_parameters = home;
  return options;
}

std::vector<Run> runs() {
  return {{.name = "AdamW"},
          {.name = "SGD", .adamw = false},
          {.name = "no fused optimizer", .options = {.fused_optimizer = false}},
          {.name = "accumulation", .options = {.gradient_accumulation_steps = 2}},
          {.name = "unused parameters", .options = {.ddp = {.find_unused_parameters = true}}},
          {.name = "ZeRO 1", .options = {.zero = zero(1)}},
          {.name = "ZeRO 2", .options = {.zero = zero(2)}},
          {.name = "ZeRO 3", .options = {.zero = zero(3)}},
          {.name = "ZeRO 2, moments in the host's memory", .options = {.zero = zero(2, "cpu")}},
          {.name = "ZeRO 3 in the host's memory", .options = {.zero = zero(3, "cpu")}},
          {.name = "ZeRO 3 in files", .options = {.zero = zero(3, "folder_sim_zero")}},
          {.name = "ZeRO 1, SGD without state", .options = {.zero = zero(1)}, .adamw = false, .momentum = 0},
          {.name = "ZeRO 2, SGD without state", .options = {.zero = zero(2)}, .adamw = false, .momentum = 0},
          {.name = "ZeRO 3, SGD without state", .options = {.zero = zero(3)}, .adamw = false, .momentum = 0}};
}

/// The losses of six steps, and the parameters after them. @collective
std::vector<double> trace(const Run& run, bool on_cpu) {
  auto options = run.options;
  options.cpu = on_cpu;
  options.log_with = {};
  Accelerator accelerator(options);
  REQUIRE(accelerator.device().is_cpu() == on_cpu);
  set_seed(3);
  Net net;
  std::unique_ptr<torch::optim::Optimizer> own = std::make_unique<torch::optim::AdamW>(net->parameters(), 1e-2);
  if (!run.adamw)
    own = std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(1e-2).momentum(run.momentum));
  auto [model, optimizer, loader, schedule] =
      accelerator.prepare(net, *own, data_loader(Rows{40}, {.batch_size = 2, .shuffle = true}),
                          linear_warmup(*own, {.warmup_steps = 2, .total_steps = 12}));
  std::vector<at::Tensor> losses;
  for (auto& batch : loader) {
    if (losses.size() == 6) break;
    auto micro_step = accelerator.accumulate(model);
    const auto loss = at::mse_loss(model(batch.data), batch.target);
    accelerator.backward(loss);
    if (accelerator.sync_gradients()) accelerator.clip_grad_norm_(net->parameters(), 0.5);
    optimizer.step();
    schedule.step();
    optimizer.zero_grad();
    losses.push_back(loss.detach());
  }
  std::vector<double> numbers;
  for (const auto& loss : losses) numbers.push_back(accelerator.gather(loss.view({1})).sum().template item<double>());
  const auto full = accelerator.summon_full_parameters(model);
  for (const auto& parameter : net->parameters()) {
    const auto values = parameter.detach().cpu().to(at::kDouble).reshape({-1});
    numbers.insert(numbers.end(), values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel());
  }
  return numbers;
}

// The ranks' tensors travel by MPI on both devices, so that sums have the same order.
std::vector<double> expected_trace(const Run& run) {
  setenv("HORTATOR_COMMUNICATOR", "mpi", /*replace=*/1);
  return trace(run, true);
}

std::uint64_t seeds() {
  const auto* const given = std::getenv("HORTATOR_SIM_SEEDS");
  return given == nullptr ? 20 : std::stoull(given);
}

/// The losses of ten steps, which are read at the end, so that nothing waits for the device before.
std::vector<double> losses_of_steps(bool is_captured) {
  Accelerator accelerator({.log_with = {}});
  const bool is_alone = accelerator.num_processes() == 1;
  set_seed(7);
  Net net;
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  int runs = 0;
  const auto body = [&, &model = model, &optimizer = optimizer](const at::Tensor& x) {
    ++runs;
    auto loss = model(x).square().mean();
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return loss;
  };
  auto step = accelerator.capture(body);
  std::vector<at::Tensor> losses;
  std::uint64_t waits = 0;
  for (int i = 0; i < 10; ++i) {
    if (i == 6) waits = sim::counts().host_waits;
    const auto x = at::full({8, 3}, 0.1 * i, accelerator.device());
    losses.push_back((is_captured ? step(x) : body(x)).detach().clone());
  }
  CHECK(step.is_recorded() == (is_captured && is_alone));
  if (is_captured && is_alone) {
    CHECK(runs == 4);  // rehearsed, then recorded; replays are the device's work only
    CHECK(sim::counts().host_waits == waits);
  }
  if (is_captured && !is_alone) CHECK_THAT(step.why_not(), ContainsSubstring("gradients are averaged over"));
  std::vector<double> numbers;
  for (const auto& loss : losses) numbers.push_back(loss.template item<double>());
  return numbers;
}

}  // namespace

TEST_CASE("a captured step is replayed with the same numbers under each policy, and without waits", "[sim]") {
  std::vector<std::vector<double>> captured;
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    captured.push_back(losses_of_steps(true));
    const auto findings = sim::take_findings();
    INFO((findings.empty() ? std::string() : findings.front()));
    CHECK(findings.empty());
  }
  CHECK(captured[1] == captured[0]);
  CHECK(captured[2] == captured[0]);
  const auto expected = losses_of_steps(false);
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(captured[0][i] == Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("training is bit for bit the CPU's, under each policy and with random seeds", "[sim]") {
  const auto all = runs();
  std::vector<std::vector<double>> expected;
  for (const auto& run : all) expected.push_back(expected_trace(run));
  const auto check = [&](std::size_t i, sim::Policy policy, std::uint64_t seed) {
    INFO(all[i].name << ", policy " << static_cast<int>(policy) << ", seed " << seed);
    sim::set_policy(policy, seed);
    CHECK(trace(all[i], false) == expected[i]);
    const auto findings = sim::take_findings();
    INFO((findings.empty() ? std::string() : findings.front()));
    CHECK(findings.empty());
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    check(i, sim::Policy::eager, 1);
    check(i, sim::Policy::late, 1);
  }
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) check(seed % all.size(), sim::Policy::random, seed);
}

TEST_CASE("the batch size is reduced until it fits on the device", "[sim]") {
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    Accelerator accelerator({.log_with = {}});
    const auto device = accelerator.device().index();
    machine::release_cached_memory(accelerator.device());  // of the run before
    constexpr std::int64_t unit = 1 << 20;
    sim::set_memory_limit(device, sim::reserved_bytes(device) + 20 * unit);
    std::vector<std::int64_t> tried;
    const auto found = find_executable_batch_size(
        accelerator, {.start = 64, .next = [](std::int64_t size) { return size / 2; }}, [&](std::int64_t size) {
          tried.push_back(size);
          Net net;
          torch::optim::SGD sgd(net->parameters(), 0.1);
          auto [model, optimizer] = accelerator.prepare(net, sgd);
          const auto batch = at::ones({size, unit / 4}, accelerator.device());
          accelerator.backward(model(batch.narrow(1, 0, 3)).sum());
          optimizer.step();
        });
    sim::set_memory_limit(device, 0);
    CHECK(tried == std::vector<std::int64_t>{64, 32, 16});
    CHECK(found == 16);
    CHECK(sim::take_findings().empty());
  }
}
