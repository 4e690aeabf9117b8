// Gradient accumulation: which micro-steps synchronise gradients, and which step the optimizer and the schedule.
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <hortator/hortator.hpp>
#include <limits>

#include "replay.hpp"
#include "step/model/model_core.hpp"
#include "step/schedule/course_schedule.hpp"

namespace hortator::golden {
namespace {

struct Doubling {
  std::int64_t count;
  std::size_t size() const { return static_cast<std::size_t>(count); }
  Example<> get(std::int64_t i) const {
    const auto x = at::full({1}, 1 + 0.01 * static_cast<double>(i));
    return {x, 2 * x};
  }
};

struct CountingSgd : torch::optim::SGD {
  using SGD::SGD;
  at::Tensor step(LossClosure closure = nullptr) override {
    ++steps;
    return SGD::step(std::move(closure));
  }
  int steps = 0;
};

struct Seen {
  std::string sync;
  std::string no_sync;
  std::vector<std::int64_t> opt_steps;
  std::vector<std::int64_t> last_epoch;
  std::vector<std::int64_t> step_count;
  std::string zeroed;
  std::string skipped;
};

AcceleratorOptions accumulating(const json& one) {
  const auto kind = one_of(one, "kind", {"lambda", "onecycle", "not_linked", "scaler", "break"});
  AcceleratorOptions options;
  if (kind == "scaler") {
    options.mixed_precision = Precision::fp16;
    options.grad_scaler = {.init_scale = 4, .growth_interval = 3};
  }
  options.gradient_accumulation_steps = one.at("k");
  options.gradient_accumulation = {.sync_with_dataloader = one.at("sync_with_dataloader") == 1,
                                   .sync_each_batch = one.at("sync_each_batch") == 1};
  options.data.split_batches = one.at("split") == 1;
  options.step_scheduler_with_optimizer = kind != "not_linked";
  return options;
}

Schedule schedule_of(const json& one, torch::optim::Optimizer& optimizer) {
  if (one.at("kind") == "onecycle") return one_cycle(optimizer, {.max_lr = 0.01, .total_steps = one.at("total_steps")});
  return Schedule(optimizer, [](std::int64_t step) { return 1.0 / static_cast<double>(1 + step); });
}

char mark(bool set) { return set ? '1' : '0'; }

// Overflow on one rank only: all ranks have to skip.
double factor_of_loss(const json& one, std::size_t sync_step, const Accelerator& accelerator) {
  if (one.at("kind") != "scaler" || !accelerator.sync_gradients()) return 1;
  const auto& pattern = one.at("found_inf_at_sync_step");
  const bool overflows = pattern[sync_step % pattern.size()] == 1;
  const bool is_mine = accelerator.process_index() == accelerator.num_processes() - 1;
  return overflows && is_mine ? std::numeric_limits<double>::infinity() : 1;
}

Outcome judge_accumulate(const json& one, const json&) {
  Accelerator accelerator(accumulating(one));
  torch::nn::Linear net(1, 1);
  CountingSgd sgd(net->parameters(), torch::optim::SGDOptions(0.001));
  auto [model, optimizer, loader, schedule] = accelerator.prepare(
      net, sgd, data_loader(Doubling{one.at("n")}, {.batch_size = one.at("bs"), .prefetch = 0}), schedule_of(one, sgd));
  Seen ours;
  std::size_t sync_steps = 0;
  for (int epoch = 0; epoch < one.at("epochs").get<int>(); ++epoch) {
    std::int64_t taken = 0;
    for (auto& batch : loader) {
      if (one.contains("break_after") && taken++ == one.at("break_after").get<std::int64_t>()) break;
      auto micro_step = accelerator.accumulate(model);
      ours.sync += mark(accelerator.sync_gradients());
      ours.no_sync += mark(accelerator.num_processes() > 1 && model.core().reducer().is_paused());
      const double factor = factor_of_loss(one, sync_steps, accelerator);
      if (accelerator.sync_gradients()) ++sync_steps;
      accelerator.backward(at::mse_loss(model(batch.data), batch.target) * factor);
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      ours.opt_steps.push_back(sgd.steps);
      ours.last_epoch.push_back(schedule.steps());
      ours.step_count.push_back(static_cast<const step::CourseSchedule&>(schedule.core()).step_count());
      ours.zeroed += mark(!net->weight.grad().defined());
      ours.skipped += mark(accelerator.optimizer_step_was_skipped());
    }
  }
  const std::vector<std::pair<const char*, json>> parts = {{"len", loader.size()},
                                                           {"sync", ours.sync},
                                                           {"no_sync", ours.no_sync},
                                                           {"opt_steps", ours.opt_steps},
                                                           {"skipped", ours.skipped},
                                                           {"sched_last_epoch", ours.last_epoch},
                                                           {"grads_zeroed", ours.zeroed},
                                                           {"sched_step_count", ours.step_count},
                                                           {"scale_end", accelerator.loss_scale().scale}};
  for (const auto& [name, value] : parts) {
    if (!one.contains(name)) continue;
    if (auto outcome = compare(name, value, one.at(name)); !outcome.difference.empty()) return outcome;
  }
  return equal();
}

}  // namespace

Format accumulate() {
  return {.name = "accumulate",
          .recognises = [](const json& file) { return file.at("cases").front().contains("sched_last_epoch"); },
          .world = [](const json& one) { return one.at("world").get<int>(); },
          .judge = judge_accumulate};
}

}  // namespace hortator::golden
