#include "parallel/pipeline/schedule.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::parallel {
namespace {

using Kind = StageAction::Kind;

/// A rank's list of actions, with the micro-batch that is next in each stage.
class RankPlan {
 public:
  RankPlan(const PipelineShape& shape, int rank) : shape_(shape), rank_(rank) {
    for (auto* next : {&forwards_, &backwards_}) next->assign(static_cast<std::size_t>(shape.stages_per_rank), 0);
  }

  void forward(int chunk = 0) { add(Kind::forward, chunk, forwards_); }
  void backward(int chunk = 0) { add(Kind::backward, chunk, backwards_); }
  void inputs() { add(Kind::inputs, 0, backwards_); }
  void weights() { actions_.push_back({.kind = Kind::weights, .stage = rank_, .micro_batch = weights_++}); }
  /// Micro-batches whose gradients of weights are still missing.
  int pending_weights() const { return backwards_.front() - weights_; }
  std::vector<StageAction> take() { return std::move(actions_); }

 private:
  void add(Kind kind, int chunk, std::vector<int>& next) {
    actions_.push_back(
        {.kind = kind, .stage = chunk * shape_.ranks + rank_, .micro_batch = next[static_cast<std::size_t>(chunk)]++});
  }

  PipelineShape shape_;
  int rank_;
  int weights_ = 0;
  std::vector<int> forwards_, backwards_;
  std::vector<StageAction> actions_;
};

void require(const PipelineShape& shape, PipelineSchedule schedule, int rank) {
  const bool is_valid =
      shape.ranks >= 1 && shape.stages_per_rank >= 1 && shape.micro_batches >= 1 && rank >= 0 && rank < shape.ranks;
  if (!is_valid)
    throw UsageError({.what = text::concat("A pipeline of ", shape.ranks, " ranks with ", shape.stages_per_rank,
                                           " stages each and ", shape.micro_batches, " micro-batches"),
                      .why = "each number is at least 1"});
  if (schedule != PipelineSchedule::interleaved && shape.stages_per_rank > 1) {
    throw UsageError(
        {.what = text::concat("The schedule ", name_of(schedule), " got ", shape.stages_per_rank, " stages a rank"),
         .why = "its ranks have one stage each",
         .hint = "use the schedule interleaved"});
  }
}

int rounds_of(const PipelineShape& shape) { return std::max(1, shape.micro_batches / shape.ranks); }

/// Micro-batches that pass a rank's stage before its next stage has its turn.
int micro_batches_of_round(const PipelineShape& shape) {
  if (shape.micro_batches % rounds_of(shape) != 0) {
    throw UsageError({.what = text::concat("The schedule interleaved got ", shape.micro_batches, " micro-batches for ",
                                           shape.ranks, " ranks"),
                      .why = "they pass in rounds of equal size, one micro-batch a rank or more",
                      .hint = "use a multiple of the number of ranks"});
  }
  return shape.micro_batches / rounds_of(shape);
}

std::vector<StageAction> plan_gpipe(const PipelineShape& shape, int rank) {
  RankPlan plan(shape, rank);
  for (int i = 0; i < shape.micro_batches; ++i) plan.forward();
  for (int i = 0; i < shape.micro_batches; ++i) plan.backward();
  return plan.take();
}

/// Forward passes that come before the first backward pass, then both in turn. `stages_per_rank` stages take turns.
std::vector<StageAction> plan_one_f_one_b(const PipelineShape& shape, int rank, int round) {
  const int total = shape.micro_batches * shape.stages_per_rank;
  const bool is_interleaved = shape.stages_per_rank > 1;
  const int behind = shape.ranks - 1 - rank;
  const int warm_up = std::min(total, is_interleaved ? (shape.stages_per_rank - 1) * round + 2 * behind : behind);
  const auto chunk = [&](int step) { return step / round % shape.stages_per_rank; };
  RankPlan plan(shape, rank);
  int forwards = 0, backwards = 0;
  for (; forwards < warm_up; ++forwards) plan.forward(chunk(forwards));
  for (; backwards < total; ++backwards) {
    if (forwards < total) plan.forward(chunk(forwards++));
    plan.backward(shape.stages_per_rank - 1 - chunk(backwards));
  }
  return plan.take();
}

/// As 1f1b, where a rank puts off the gradients of weights for as many micro-batches as there are ranks before it, and
/// computes them where it would wait.
std::vector<StageAction> plan_zero_bubble(const PipelineShape& shape, int rank) {
  RankPlan plan(shape, rank);
  int forwards = 0;
  for (; forwards < std::min(shape.micro_batches, shape.ranks - 1 - rank); ++forwards) plan.forward();
  for (int backwards = 0; backwards < shape.micro_batches; ++backwards) {
    if (forwards < shape.micro_batches) plan.forward(), ++forwards;
    plan.inputs();
    if (plan.pending_weights() > rank) plan.weights();
  }
  while (plan.pending_weights() > 0) plan.weights();
  return plan.take();
}

}  // namespace

std::string_view name_of(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::gpipe:
      return "gpipe";
    case PipelineSchedule::interleaved:
      return "interleaved";
    case PipelineSchedule::zero_bubble:
      return "zb-h1";
    default:
      return "1f1b";
  }
}

bool can_order(PipelineSchedule schedule, const PipelineShape& shape) {
  return schedule != PipelineSchedule::interleaved || shape.micro_batches % rounds_of(shape) == 0;
}

std::vector<StageAction> plan_rank(PipelineSchedule schedule, const PipelineShape& shape, int rank) {
  require(shape, schedule, rank);
  switch (schedule) {
    case PipelineSchedule::gpipe:
      return plan_gpipe(shape, rank);
    case PipelineSchedule::zero_bubble:
      return plan_zero_bubble(shape, rank);
    case PipelineSchedule::interleaved:
      return plan_one_f_one_b(shape, rank, micro_batches_of_round(shape));
    default:
      return plan_one_f_one_b(shape, rank, shape.micro_batches);
  }
}

std::vector<std::vector<StageAction>> plan_ranks(PipelineSchedule schedule, const PipelineShape& shape) {
  std::vector<std::vector<StageAction>> plans;
  for (int rank = 0; rank < shape.ranks; ++rank) plans.push_back(plan_rank(schedule, shape, rank));
  return plans;
}

}  // namespace hortator::parallel
