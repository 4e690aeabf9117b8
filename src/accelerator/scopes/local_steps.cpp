#include "accelerator/scopes/local_steps.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "accelerator/channels/channels.hpp"
#include "accelerator/scopes/outer_step.hpp"
#include "accelerator/scopes/takeover.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "mpi/collectives.hpp"
#include "step/precision/grad_scaler.hpp"

namespace hortator::accelerator {

// Where nothing is sharded, the group along shard is this rank.
LocalSteps::LocalSteps(Training& training, ModelBase model, std::int64_t steps, OuterStep* outer)
    : training_(training),
      model_(std::move(model)),
      others_(training.channels.along(parallel::Axis::replicate)),
      every_(steps),
      outer_(outer),
      exceptions_(std::uncaught_exceptions()) {
  const auto& mine = training_.channels.along(parallel::Axis::shard);
  auto& core = model_.core();
  core.begin_apart();
  if (core.sharded() != nullptr) {
    group_.emplace(training_, core, mine);
  } else {
    local_.emplace(std::vector{model_});
  }
  training_.control.train_among(&mine, group_ ? &group_->pass() : nullptr);
  if (outer_ != nullptr) {
    outer_->begin();
  } else {
    std::vector<at::Tensor> weights;
    for (const auto& one : core.stepped_parameters()) weights.push_back(core.stepped(one.tensor).detach());
    parameters_.emplace(weights, others_.on_device);
  }
  auto* const scaler = training_.control.scaler();
  if (scaler == nullptr) return;
  training_.control.settle_steps();
  scale_ = scaler->state();
  scaler->judge_among(&mine.on_device);
}

void LocalSteps::end_steps() {
  training_.control.train_among(nullptr, nullptr);
  group_.reset();
  local_.reset();
  if (auto* const scaler = training_.control.scaler()) scaler->judge_among(nullptr);
}

// After an exception ranks may have different scales, by which gradients must not be averaged.
LocalSteps::~LocalSteps() {
  model_.core().end_apart(/*equal=*/false);
  end_steps();
  if (scale_) training_.control.scaler()->load(*scale_);
}

void LocalSteps::step() {
  model_.core().check_alive();
  if (++taken_ % every_ == 0) average(/*done=*/false);
}

// Moments differ even after equal numbers of steps, and ranks that train together must have the same.
void LocalSteps::leave() {
  if (group_) model_.core().finish_gradients();
  while (!average(/*done=*/true)) {
  }
  const auto steps = mpi::all_gather(others_.host, taken_);
  const auto most = std::max_element(steps.begin(), steps.end());
  take_over_steps(training_, others_.host, static_cast<int>(most - steps.begin()));
  end_steps();
  scale_.reset();
  model_.core().end_apart(/*equal=*/true);
}

// Ranks that are done wait for the others' next average, so that these cannot save together with them.
bool LocalSteps::average(bool done) {
  const auto& host = others_.host;
  const int ranks_done = mpi::all_reduce(host, done ? 1 : 0, mpi::Op::sum);
  auto* const sharded = model_.core().sharded();
  if (sharded != nullptr) sharded->arrive();  // no rank reads any more what is written next
  outer_ != nullptr ? outer_->take() : parameters_->run();
  if (sharded != nullptr) sharded->publish_all();
  model_.core().share_buffers();
  ranks_done == 0 ? model_.core().note_equal() : model_.core().begin_apart();
  return ranks_done == host.size();
}

}  // namespace hortator::accelerator
