// Orders of work in pipelines: complete, without waiting for each other, and as costly as their formulas.
#include "parallel/pipeline/schedule.hpp"

#include <fstream>
#include <hortator/error.hpp>
#include <random>
#include <sstream>
#include <string>

#include "core/text/text.hpp"
#include "parallel/pipeline/timeline.hpp"
#include "support/catch.hpp"

using namespace hortator;
using parallel::PipelineShape;
using Kind = parallel::StageAction::Kind;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;

namespace {

constexpr std::array all_schedules = {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b,
                                      PipelineSchedule::interleaved, PipelineSchedule::zero_bubble};

bool fits(PipelineSchedule schedule, const PipelineShape& shape) {
  if (schedule != PipelineSchedule::interleaved) return shape.stages_per_rank == 1;
  return parallel::can_order(schedule, shape);
}

parallel::Timeline timeline_of(PipelineSchedule schedule, const PipelineShape& shape) {
  return run_plans(parallel::plan_ranks(schedule, shape), shape);
}

std::string text_of(const std::vector<parallel::StageAction>& plan) {
  std::vector<std::string> names;
  for (const auto& [kind, stage, micro] : plan)
    names.push_back(text::concat(kind == Kind::forward ? "F" : "B", stage, ".", micro));
  return text::join(names, " ");
}

PipelineSchedule schedule_named(const std::string& name) {
  for (const auto schedule : all_schedules) {
    if (parallel::name_of(schedule) == name) return schedule;
  }
  FAIL("no schedule " << name);
  return {};
}

}  // namespace

TEST_CASE("plans of random pipelines are complete, and their ranks do not wait for each other") {
  std::mt19937 random(7);
  const auto number = [&](int most) { return std::uniform_int_distribution(1, most)(random); };
  int planned = 0;
  for (int i = 0; i < 20000; ++i) {
    const PipelineShape shape{.ranks = number(8), .stages_per_rank = number(3), .micro_batches = number(24)};
    const auto schedule = all_schedules[static_cast<std::size_t>(number(4) - 1)];
    if (!fits(schedule, shape)) {
      CHECK_THROWS_AS(parallel::plan_rank(schedule, shape, 0), UsageError);
      continue;
    }
    ++planned;
    REQUIRE_NOTHROW(timeline_of(schedule, shape));
  }
  CHECK(planned > 5000);
}

TEST_CASE("idle shares are those of the formulas") {
  for (int ranks = 1; ranks <= 6; ++ranks) {
    for (int micro = ranks; micro <= 4 * ranks; micro += ranks) {
      const double p = ranks, m = micro;
      const PipelineShape shape{.ranks = ranks, .micro_batches = micro};
      CHECK_THAT(timeline_of(PipelineSchedule::gpipe, shape).idle_share(), WithinAbs((p - 1) / (m + p - 1), 1e-9));
      CHECK_THAT(timeline_of(PipelineSchedule::one_f_one_b, shape).idle_share(),
                 WithinAbs((p - 1) / (m + p - 1), 1e-9));
      // halves of backward fill all but the way of the first micro-batch to the last rank
      CHECK_THAT(timeline_of(PipelineSchedule::zero_bubble, shape).idle_share(),
                 WithinAbs((p - 1) / (3 * m + p - 1), 1e-9));
      const PipelineShape turns{.ranks = ranks, .stages_per_rank = 2, .micro_batches = micro};
      CHECK_THAT(timeline_of(PipelineSchedule::interleaved, turns).idle_share(),
                 WithinAbs((p - 1) / (2 * m + p - 1), 1e-9));
    }
  }
}

TEST_CASE("a rank holds as many micro-batches as its schedule says") {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (int micro = 1; micro <= 12; ++micro) {
      const PipelineShape shape{.ranks = ranks, .micro_batches = micro};
      const auto all = timeline_of(PipelineSchedule::gpipe, shape).peaks;
      const auto few = timeline_of(PipelineSchedule::one_f_one_b, shape).peaks;
      const auto halves = timeline_of(PipelineSchedule::zero_bubble, shape).peaks;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        CHECK(all[at] == micro);
        CHECK(few[at] == std::min(micro, ranks - rank));
        CHECK(halves[at] <= std::min(micro, ranks));
      }
    }
  }
}

TEST_CASE("orders are those of torch.distributed.pipelining") {
  std::ifstream file(TORCH_ORDERS);
  std::string line;
  int lines = 0;
  while (std::getline(file, line)) {
    std::istringstream head(line.substr(0, line.find(':')));
    std::string name;
    PipelineShape shape;
    int rank = 0;
    head >> name >> shape.ranks >> shape.stages_per_rank >> shape.micro_batches >> rank;
    INFO(line);
    CHECK(text_of(parallel::plan_rank(schedule_named(name), shape, rank)) == line.substr(line.find(": ") + 2));
    ++lines;
  }
  CHECK(lines > 100);
}

TEST_CASE("plans that cannot run are refused") {
  const PipelineShape shape{.ranks = 2, .micro_batches = 2};
  auto plans = parallel::plan_ranks(PipelineSchedule::one_f_one_b, shape);
  auto missing = plans;
  missing[1].pop_back();
  CHECK_THROWS_WITH(run_plans(missing, shape), ContainsSubstring("Stage 1 does not compute micro-batch 1 once"));
  auto turned = plans;
  std::reverse(turned[1].begin(), turned[1].end());
  CHECK_THROWS_WITH(run_plans(turned, shape), ContainsSubstring("wait for each other"));
  auto elsewhere = plans;
  elsewhere[0][0].stage = 1;
  CHECK_THROWS_WITH(run_plans(elsewhere, shape), ContainsSubstring("Rank 0 computes stage 1 of another rank"));
  CHECK_THROWS_WITH(
      parallel::plan_rank(PipelineSchedule::gpipe, {.ranks = 2, .stages_per_rank = 2, .micro_batches = 2}, 0),
      ContainsSubstring("The schedule gpipe got 2 stages a rank"));
  CHECK_THROWS_WITH(
      parallel::plan_rank(PipelineSchedule::interleaved, {.ranks = 2, .stages_per_rank = 2, .micro_batches = 5}, 0),
      ContainsSubstring("5 micro-batches for 2 ranks"));
  CHECK_THROWS_AS(parallel::plan_rank(PipelineSchedule::gpipe, {.ranks = 0}, 0), UsageError);
}

TEST_CASE("a chart shows what each rank does") {
  const PipelineShape shape{.ranks = 2, .micro_batches = 2};
  CHECK(chart(timeline_of(PipelineSchedule::one_f_one_b, shape)) ==
        "rank 0:   0   1   .   . [0] [0]   . [1] [1]\n"
        "rank 1:   .   0 [0] [0]   1 [1] [1]   .   .\n");
}
