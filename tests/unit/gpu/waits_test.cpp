// How often a training step makes the host wait for the device: never, except for the verdict of fp16 without
// late_verdict.
#include "../accelerator/fixtures.hpp"
#include "counted_calls.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

using namespace hortator;
using test::device_calls;
using test::DeviceCalls;

namespace {

/// The calls of `counted` steps, after enough steps to allocate memory and streams.
DeviceCalls calls_of_steps(Precision precision, int counted, const GradScalerOptions& scaler = {}) {
  constexpr int warm_up = 40;
  Accelerator accelerator({.mixed_precision = precision, .grad_scaler = scaler, .log_with = {}});
  test::Net net(0.1);
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  const auto data = at::randn({4096, 3});
  auto [model, optimizer, loader, schedule] = accelerator.prepare(
      net, adamw, data_loader(tensor_dataset(data, data.sum(1, true)), {.batch_size = 16, .shuffle = true}),
      cosine_warmup(adamw, {.warmup_steps = 3, .total_steps = 1000}));
  int step = 0;
  DeviceCalls before;
  for (auto& batch : accelerator.progress(loader, "counted steps")) {
    if (step == warm_up) before = device_calls();
    auto micro_step = accelerator.accumulate(model);
    accelerator.backward(at::mse_loss(model(batch.data), batch.target));
    accelerator.clip_grad_norm_(net->parameters(), 1.0);
    optimizer.step();
    schedule.step();
    optimizer.zero_grad();
    if (++step == warm_up + counted) return device_calls() - before;
  }
  throw std::logic_error("the data set is too small");
}

}  // namespace

TEST_CASE("waits and copies to the host are counted") {
  if (!test::has_gpu()) return;
  const auto number = at::ones({}, test::accelerator_type);
  const auto before = device_calls();
  CHECK(number.item<float>() == 1);
  const auto seen = device_calls() - before;
  CHECK(seen.waits >= 1);
  CHECK(seen.device_to_host == 1);
  const auto again = device_calls();
  number.add_(1);
  CHECK((device_calls() - again).waits == 0);
}

TEST_CASE("a step in fp32 or bf16 waits for nothing and copies nothing to the host") {
  if (!test::has_gpu()) return;
  for (const auto precision : {Precision::no, Precision::bf16}) {
    INFO(to_string(precision));
    const auto calls = calls_of_steps(precision, 100);
    CHECK(calls.waits == 0);
    CHECK(calls.device_to_host == 0);
  }
}

TEST_CASE("a step in fp16 waits for one number") {
  if (!test::has_gpu()) return;
  const auto calls = calls_of_steps(Precision::fp16, 100);
  CHECK(calls.waits <= 2 * 100);  // one for the copy, one for reading it
  CHECK(calls.device_to_host <= 100);
}

TEST_CASE("a step in fp16 with late verdicts waits for nothing and copies nothing to the host") {
  if (!test::has_gpu()) return;
  const auto calls = calls_of_steps(Precision::fp16, 100, {.late_verdict = true});
  CHECK(calls.waits == 0);
  CHECK(calls.device_to_host == 0);
}
