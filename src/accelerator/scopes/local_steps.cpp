#include "accelerator/scopes/local_steps.hpp"

#include <algorithm>
#include <exception>

#include "accelerator/channels/channels.hpp"
#include "accelerator/scopes/outer_step.hpp"
#include "accelerator/scopes/takeover.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "mpi/collectives.hpp"
#include "step/precision/grad_scaler.hpp"

namespace hortator::accelerator {
namespace {

std::vector<at::Tensor> parameters_of(const ModelBase& model) {
  std::vector<at::Tensor> parameters;
  for (const auto& one : model.core().parameters()) parameters.push_back(one.tensor);
  return parameters;
}

}  // namespace

LocalSteps::LocalSteps(Training& training, const ModelBase& model, std::int64_t steps, OuterStep* outer)
    : training_(training),
      model_(model),
      every_(steps),
      local_({model_}),
      outer_(outer),
      exceptions_(std::uncaught_exceptions()) {
  model_.core().begin_apart();
  if (outer_ != nullptr) {
    outer_->begin();
  } else {
    parameters_.emplace(parameters_of(model), training.data().on_device);
  }
  auto* const scaler = training_.control.scaler();
  if (scaler == nullptr) return;
  training_.control.settle_steps();
  scale_ = scaler->state();
  scaler->judge_alone(true);
}

// After an exception ranks may have different scales, by which gradients must not be averaged.
LocalSteps::~LocalSteps() {
  model_.core().end_apart(/*equal=*/false);
  if (!scale_) return;
  training_.control.scaler()->judge_alone(false);
  training_.control.scaler()->load(*scale_);
}

void LocalSteps::step() {
  model_.core().check_alive();
  if (++taken_ % every_ == 0) average(/*done=*/false);
}

// Moments differ even after equal numbers of steps, and ranks that train together must have the same.
void LocalSteps::leave() {
  while (!average(/*done=*/true)) {
  }
  const auto steps = mpi::all_gather(training_.host(), taken_);
  const auto most = std::max_element(steps.begin(), steps.end());
  take_over_steps(training_, static_cast<int>(most - steps.begin()));
  if (auto* const scaler = training_.control.scaler()) scaler->judge_alone(false);
  scale_.reset();
  model_.core().end_apart(/*equal=*/true);
}

// Ranks that are done wait for the others' next average, so that these cannot save together with them.
bool LocalSteps::average(bool done) {
  const auto& host = training_.data().host;
  const int ranks_done = mpi::all_reduce(host, done ? 1 : 0, mpi::Op::sum);
  outer_ != nullptr ? outer_->take() : parameters_->run();
  model_.core().share_buffers();
  ranks_done == 0 ? model_.core().note_equal() : model_.core().begin_apart();
  return ranks_done == host.size();
}

}  // namespace hortator::accelerator
