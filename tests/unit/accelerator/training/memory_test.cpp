// Memory does not grow with the number of epochs.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <unistd.h>

#include <fstream>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;
using test::Rows;

namespace {

std::int64_t resident_bytes() {
  std::int64_t total = 0;
  std::int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

long page_faults_so_far() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return use.ru_minflt;
}

}  // namespace

TEST_CASE("memory is flat over a thousand epochs with evaluation") {
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  Net net(0.1);
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  auto [model, optimizer, train, test, schedule] = accelerator.prepare(
      net, adamw, data_loader(Rows{10 * 2 * accelerator.num_processes()}, {.batch_size = 2, .shuffle = true}),
      data_loader(Rows{7}, {.batch_size = 2}), linear_warmup(adamw, {.warmup_steps = 10, .total_steps = 1000000}));
  std::int64_t after_ten = 0;
  while (train.epoch() < 1000) {
    model.train();
    for (auto& batch : train) {
      auto micro_step = accelerator.accumulate(model);
      const auto loss = at::mse_loss(model(batch.data), batch.target);
      accelerator.backward(loss);
      if (accelerator.sync_gradients()) accelerator.clip_grad_norm_(model.parameters(), 1.0);
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      accelerator.log({{"loss", loss}});
    }
    model.eval();
    const at::NoGradGuard no_grad;
    for (auto& batch : test) accelerator.gather_for_metrics(model(batch.data));
    if (train.epoch() == 10) after_ten = resident_bytes();
  }
  CHECK(resident_bytes() - after_ten <= std::int64_t{1} << 20);
}

// Each forward keeps 64 MiB for backward.
TEST_CASE("the next step reuses the memory that a step frees") {
  constexpr int width = 1024;
  constexpr int steps = 4;
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // small pages can be counted
  Accelerator accelerator;
  torch::nn::Sequential net(torch::nn::Linear(1, width));
  for (int i = 0; i < 16; ++i) net->push_back(torch::nn::Sigmoid());
  torch::optim::SGD sgd(net->parameters(), 1e-3);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto step = [&, &model = model, &optimizer = optimizer] {
    accelerator.backward(model(at::ones({width, 1})).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  };
  for (int i = 0; i < 3; ++i) step();
  const auto before = page_faults_so_far();
  for (int i = 0; i < steps; ++i) step();
  CHECK((page_faults_so_far() - before) * sysconf(_SC_PAGESIZE) < steps * (std::int64_t{8} << 20));
}
