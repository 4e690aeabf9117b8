// Memory stays where it is, however many epochs a run has.
#include <unistd.h>

#include <fstream>

#include "fixtures.hpp"
#include "support/catch.hpp"

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
