// Pipelines: a step of a model whose layers are on all ranks, beside one of the whole model on each rank.
#include <ATen/ops/randn.h>
#include <torch/optim/sgd.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <hortator/error.hpp>

#include "bench/bare_step.hpp"
#include "bench/parallel/blocks.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "parallel/pipeline/timeline.hpp"

namespace hortator::bench {
namespace {

constexpr std::int64_t layers_of_rank = 4, micro_batches_of_rank = 4, rows_of_micro_batch = 2, pipeline_tokens = 128;

struct NamedSchedule {
  const char* name;
  PipelineSchedule schedule;
};
constexpr std::array<NamedSchedule, 4> all_schedules = {{{"gpipe", PipelineSchedule::gpipe},
                                                         {"1f1b", PipelineSchedule::one_f_one_b},
                                                         {"interleaved", PipelineSchedule::interleaved},
                                                         {"zb-h1", PipelineSchedule::zero_bubble}}};

/// The share of a rank's time in which it would wait if messages took no time, and a backward pass twice the time of a
/// forward pass.
double planned_idle_share(const parallel::PipelineShape& shape, PipelineSchedule schedule) {
  return run_plans(plan_ranks(schedule, shape), shape).idle_share();
}

/// The share of a step in which ranks wait, by the times of its actions: the least of some steps, since other programs
/// can only add to it. `step` writes them to the file. @collective
double waiting_share(Accelerator& all, int ranks, const std::function<void(const std::filesystem::path&)>& step) {
  const auto file = std::filesystem::temp_directory_path() / text::concat("hortator-pipeline-", getppid(), ".jsonl");
  constexpr int steps = 7;
  double least = 1;
  for (int i = 0; i < steps; ++i) {
    step(file);
    if (!all.is_main_process()) continue;
    double busy = 0, end = 0;
    std::ifstream rows(file);
    for (std::string row; std::getline(rows, row);) {
      const auto times = core::parse_record(row);
      if (times.value("times", "") != "measured") continue;
      busy += times.value("end", 0.0) - times.value("begin", 0.0);
      end = std::max(end, times.value("end", 0.0));
    }
    if (end > 0) least = std::min(least, 1 - busy / (ranks * end));
  }
  if (all.is_main_process()) std::filesystem::remove(file);
  return least;
}

/// @collective
Result pipeline_step(Accelerator& all, const Plan& plan, const NamedSchedule& chosen) {
  const int ranks = all.num_processes();
  const auto micro_batches = micro_batches_of_rank * ranks;
  Accelerator accelerator({.cpu = true, .parallel = {.pipeline = ranks, .pipeline_schedule = chosen.schedule}});
  auto net = make_blocks(layers_of_rank * ranks), whole = make_blocks(layers_of_rank * ranks);
  torch::optim::SGD sgd(net->parameters(), 1e-3), sgd_of_whole(whole->parameters(), 1e-3);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto x = at::randn({rows_of_micro_batch * micro_batches, pipeline_tokens, block_width});
  const auto step = [&, &model = model, &optimizer = optimizer](const std::filesystem::path& times) {
    accelerator.pipeline_step(model, x, [](auto& model, at::Tensor& part) { return model(part).square().mean(); },
                              {.micro_batches = micro_batches, .times = times});
    optimizer.step();
    optimizer.zero_grad();
  };
  const auto ours = [&] { step({}); };
  const auto reference = [&] {
    for (const auto& part : x.chunk(micro_batches)) (whole->forward(part).square().mean() / micro_batches).backward();
    sgd_of_whole.step();
    sgd_of_whole.zero_grad();
  };
  parallel::PipelineShape shape{.ranks = ranks, .micro_batches = static_cast<int>(micro_batches)};
  if (chosen.schedule == PipelineSchedule::interleaved) shape.stages_per_rank = 2;
  Result result = {
      .name = text::concat("pipeline_", chosen.name),
      .params = {{"ranks", ranks},
                 {"micro_batches", micro_batches},
                 {"width", block_width},
                 {"layers", layers_of_rank * ranks},
                 {"tokens", rows_of_micro_batch * micro_batches * pipeline_tokens},
                 {"planned_idle_share", planned_idle_share(shape, chosen.schedule)}},
      .reference = "the whole model on each rank",
      .timing = time_in_pairs({.ours = ours, .reference = reference, .line_up = [&] { line_up(all); }}, plan)};
  result.params["waiting_share"] = waiting_share(all, ranks, step);
  // each rank computes 1 / ranks of what the baseline does: what the schedule computes twice counts as well
  result.params["measured_idle_share"] = 1 - 1 / (ranks * result.timing.ratio);
  return result;
}

}  // namespace

std::vector<Result> pipeline(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  std::vector<std::string> names;
  for (const auto& one : all_schedules) names.emplace_back(one.name);
  check_known("--case", selection.cases, names);
  if (accelerator.num_processes() == 1) {
    throw UsageError({.what = "bench pipeline was started on one rank",
                      .why = "it times stages that wait for each other",
                      .hint = "hortator launch -n 2 hortator bench pipeline"});
  }
  std::vector<Result> results;
  for (const auto& one : all_schedules) {
    if (selection.wants(one.name)) results.push_back(pipeline_step(accelerator, plan, one));
  }
  return results;
}

}  // namespace hortator::bench
