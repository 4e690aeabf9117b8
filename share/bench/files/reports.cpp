// What a run reports while it trains: the time of each report beside the interval in which it is spent, and all of them
// together.
#include <filesystem>
#include <functional>
#include <memory>

#include "accelerator/training/run_status.hpp"
#include "bench/bare_step.hpp"

namespace hortator::bench {
namespace {

using accelerator::RunFacts;
using accelerator::RunStatus;
using Times = std::vector<double>;

constexpr int checks = 1000;  // in one measurement: one is shorter than the clock's precision

Times times_of(const Plan& plan, const std::function<void()>& line_up, const std::function<void()>& call) {
  call();
  Times times;
  for (int run = 0; run < plan.blocks; ++run) {
    line_up();
    const auto begin = seconds_now();
    call();
    times.push_back(seconds_now() - begin);
  }
  return times;
}

/// The seconds of a step of the smallest workload. @collective
double step_seconds(Accelerator& accelerator, const Plan& plan, const Workload& workload) {
  const auto batch = make_batch(accelerator, workload);
  auto net = workload.make_net();
  const auto own_optimizer = make_optimizer(workload, *net);
  auto [model, optimizer] = accelerator.prepare(net, *own_optimizer);
  const auto block = times_of(
      plan, [&] { line_up(accelerator); },
      [&, &model = model, &optimizer = optimizer] {
        for (int step = 0; step < plan.steps; ++step) {
          accelerator.backward(workload.loss(model(batch.input), batch.target));
          optimizer.step();
          optimizer.zero_grad();
        }
      });
  accelerator.free_memory();
  return median(block) / plan.steps;
}

Result row_of(Accelerator& accelerator, const std::string& report, const Times& times, double interval) {
  const Times intervals(times.size(), interval);
  return {.name = "reports",
          .params = {{"report", report}, {"ranks", accelerator.num_processes()}, {"interval_s", interval}},
          .reference = "its interval",
          .timing = summarize(times, intervals)};
}

}  // namespace

std::vector<Result> reports(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  check_known("--case", selection.cases, {});
  const auto together = [&] { line_up(accelerator); };
  const auto folder = plan.folder / "reports";
  RunStatus status(accelerator.world(), folder);
  const double step = step_seconds(accelerator, plan, workloads().front());
  const auto row = times_of(plan, together, [&] { status.write(RunFacts()); });
  auto check = times_of(plan, together, [&] {
    for (int i = 0; i < checks; ++i) {
      status.count_backward(/*averages=*/true);
      if (status.is_due()) status.write(RunFacts());
    }
  });
  for (auto& time : check) time /= checks;
  // The main rank alone writes metrics and sets the comment; the others' status rows are read for it.
  const observe::RankStatus main{.run_id = "bench", .world = accelerator.num_processes(), .time = 1, .updates = 1};
  observe::MetricsFile metrics(folder, observe::metrics_period());
  const auto text = times_of(plan, together, [&] {
    if (accelerator.is_main_process()) metrics.write(main);
  });
  // With the time of the scheduler's command, which a thread waits for while the run trains.
  const auto comment = times_of(plan, together, [&] {
    if (accelerator.is_main_process())
      observe::JobCommenter("slurm 1", std::chrono::duration<double>(1e-9)).report(main);
  });
  const double text_period = observe::metrics_period().count();
  const double comment_period = observe::comment_period().count();
  std::vector<Result> results;
  Times all(row.size());
  const auto add = [&](const std::string& report, const Times& times, double interval) {
    if (interval <= 0) return;  // it is off
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += times[i] / interval;
    results.push_back(row_of(accelerator, report, times, interval));
  };
  add("status row", row, 1);
  add("metrics.prom", text, text_period);
  add("comment of the job", comment, comment_period);
  add("check in each step of " + workloads().front().name, check, step);
  results.push_back(row_of(accelerator, "all together, in a second", all, 1));
  return results;
}

}  // namespace hortator::bench
