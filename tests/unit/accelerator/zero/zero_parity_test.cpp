// Fifty steps of each stage, also offloaded to disk, compared with stage 0: with accumulation and clipping, a tied and
// a frozen parameter, a scalar one, and sizes that no number of ranks divides.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "support/catch.hpp"
#include "support/differences.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::Shardable;

namespace {

struct FiftySteps {
  std::vector<at::Tensor> parameters = {};
  std::vector<double> losses = {};
};

FiftySteps fifty_steps(const AcceleratorOptions& options, at::ScalarType type = at::kFloat) {
  Accelerator accelerator(options);
  Shardable net(type);
  torch::optim::AdamW adamw(test::distinct(*net), torch::optim::AdamWOptions(1e-3).weight_decay(0.1));
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  FiftySteps result;
  for (int step = 0; step < 50 * options.gradient_accumulation_steps; ++step) {
    auto micro_step = accelerator.accumulate(model);
    const auto y = model(test::batch(accelerator, step, type));
    const auto loss = at::mse_loss(y, at::full_like(y, 0.3));
    result.losses.push_back(loss.item<double>());
    accelerator.backward(loss);
    if (accelerator.sync_gradients()) accelerator.clip_grad_norm_(model.parameters(), 0.1);
    optimizer.step();
    optimizer.zero_grad();
  }
  accelerator.wait_for_everyone();
  result.parameters = test::copies_of(*net);
  accelerator.wait_for_everyone();
  return result;
}

std::map<std::string, ZeroConfig> all_stages(const test::Folder& folder) {
  ZeroConfig on_disk = {.stage = 3, .offload_parameters = folder.path(), .resident_bytes = 1 << 10};
  std::map<std::string, ZeroConfig> configs = {
      {"stage 1", {.stage = 1}}, {"stage 2", {.stage = 2}}, {"stage 3", {.stage = 3}}};
  configs["stage 3, parameters on disk"] = on_disk;
  on_disk.offload_optimizer = folder.path();
  configs["stage 3, all on disk"] = on_disk;
  configs["stage 2, moments and gradients on disk"] = {
      .stage = 2, .offload_optimizer = folder.path(), .resident_bytes = 1 << 10};
  return configs;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = hortator::test::larger(largest, std::abs(a[i] - b.at(i)));
  return largest;
}

void check_all_stages(AcceleratorOptions options, double tolerance, at::ScalarType type = at::kFloat) {
  const test::Folder folder(State(), "zero_parity");
  options.ddp.bucket_cap_mb = 3e-3;
  options.zero.stage = 0;
  const auto expected = fifty_steps(options, type);
  CHECK(expected.losses.back() < expected.losses.front());
  for (const auto& [name, zero] : all_stages(folder)) {
    INFO(name);
    const bool masters = options.zero.fp32_masters;
    options.zero = zero;
    options.zero.fp32_masters = masters;
    const auto sharded = fifty_steps(options, type);
    CHECK(test::are_close(sharded.parameters, expected.parameters, tolerance));
    CHECK(largest_difference(sharded.losses, expected.losses) <= tolerance);
  }
}

}  // namespace

TEST_CASE("fifty steps in fp32 stay within 1e-6 of stage 0") { check_all_stages({}, 1e-6); }

TEST_CASE("fifty steps of two micro-steps each stay within 1e-6 of stage 0") {
  check_all_stages({.gradient_accumulation_steps = 2}, 1e-6);
}

TEST_CASE("fifty steps that compute in bf16 stay within 5e-3 of stage 0") {
  check_all_stages({.mixed_precision = Precision::bf16}, 5e-3);
}

TEST_CASE("fifty steps of bf16 parameters without fp32 copies stay within 5e-3 of stage 0") {
  check_all_stages({.zero = {.fp32_masters = false}}, 5e-3, at::kBFloat16);
}
