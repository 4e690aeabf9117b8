// What a stage keeps of its micro-batches, beside the plan.
#include "parallel/pipeline/timeline.hpp"
#include "support/live_bytes.hpp"
#include "unit/accelerator/pipeline/pipeline_course.hpp"

using namespace hortator;
using namespace hortator::test::pipelines;

namespace {

constexpr std::int64_t rows_of_micro_batch = 64, layers_of_rank = 16;

/// The most bytes that a step of this rank has allocated at once.
double peak_of_step(PipelineSchedule schedule, std::int64_t micro_batches) {
  Accelerator accelerator({.parallel = stages(ranks(), schedule)});
  set_seed(5);
  Chain net(layers_of_rank * ranks(), /*recomputes=*/false, /*is_tied=*/false);
  use_running_statistics(*net);
  auto model = accelerator.prepare(net);
  const auto ids = at::arange(rows_of_micro_batch * micro_batches * length, at::kLong).remainder(vocabulary);
  const Words batch{ids.view({-1, length}), ids.view({-1, length})};
  const auto step = [&] {
    accelerator.pipeline_step(model, batch,
                              [](auto& model, Words& part) {
                                return at::cross_entropy_loss(model(part.ids).flatten(0, 1), part.targets.flatten());
                              },
                              {.micro_batches = micro_batches});
  };
  step();  // gradients and buffers exist afterwards
  const test::LiveBytes live;
  step();
  return static_cast<double>(live.peak());
}

double planned(PipelineSchedule schedule, int micro_batches) {
  const bool takes_turns = schedule == PipelineSchedule::interleaved && ranks() > 1;
  const parallel::PipelineShape shape{
      .ranks = ranks(), .stages_per_rank = takes_turns ? 2 : 1, .micro_batches = micro_batches};
  const auto timeline = parallel::run_plans(parallel::plan_ranks(schedule, shape), shape);
  const auto held = timeline.peaks.at(static_cast<std::size_t>(State().process_index()));
  return static_cast<double>(held) / shape.stages_per_rank;
}

}  // namespace

TEST_CASE("a stage keeps the activations of as many micro-batches as its schedule plans", "[pipeline]") {
  // gpipe keeps all of them: two sizes tell what one takes, and all other memory.
  const auto eight = peak_of_step(PipelineSchedule::gpipe, 8), four = peak_of_step(PipelineSchedule::gpipe, 4);
  const auto one = (eight - four) / 4, beside = four - 4 * one;
  constexpr double least = rows_of_micro_batch * length * width * sizeof(float) * layers_of_rank;
  CHECK(one > least);
  CHECK(beside < one);
  for (const auto schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved}) {
    INFO("schedule " << static_cast<int>(schedule) << ", one micro-batch " << one << ", beside " << beside);
    const auto expected = planned(schedule, 8) * one + beside;
    CHECK(std::abs(peak_of_step(schedule, 8) / expected - 1) <= 0.1);
  }
  // Halves of backward free what only gradients of inputs need.
  CHECK(peak_of_step(PipelineSchedule::zero_bubble, 8) <=
        1.1 * (planned(PipelineSchedule::zero_bubble, 8) * one + beside));
}
