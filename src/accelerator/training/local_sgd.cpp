#include <algorithm>
#include <exception>
#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>

#include "accelerator/training/local_steps.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator {
namespace accelerator {
namespace {

void check_steps(std::int64_t steps) {
  if (steps >= 1) return;
  throw UsageError({.what = text::concat("LocalSGD was given ", text::count(steps, "step")),
                    .why = "it counts the local steps between two averages",
                    .hint = "use 1 or more"});
}

void check_ours(const Training& training, const ModelBase& model) {
  model.core().check_alive();
  const auto is_it = [&](const auto& ours) { return ours.get() == &model.core(); };
  if (std::any_of(training.prepared.models().begin(), training.prepared.models().end(), is_it)) return;
  throw UsageError({.what = "LocalSGD got a model that another Accelerator has prepared",
                    .why = "it averages over this Accelerator's ranks",
                    .hint = "prepare it with this Accelerator"});
}

std::vector<at::Tensor> parameters_of(const ModelBase& model) {
  std::vector<at::Tensor> parameters;
  for (const auto& one : model.core().parameters()) parameters.push_back(one.tensor);
  return parameters;
}

}  // namespace

LocalSteps::LocalSteps(Training& training, const ModelBase& model, std::int64_t steps)
    : training_(training),
      model_(model),
      every_(steps),
      parameters_(parameters_of(model), training.channels.device_communicator()),
      local_({model_}),
      exceptions_(std::uncaught_exceptions()) {}

void LocalSteps::step() {
  model_.core().check_alive();
  if (++taken_ % every_ == 0) average(/*done=*/false);
}

void LocalSteps::leave() {
  while (!average(/*done=*/true)) {
  }
}

bool LocalSteps::average(bool done) {
  const bool all_done = mpi::all_reduce(training_.host(), done ? 1 : 0, MPI_MIN) == 1;
  parameters_.run();
  model_.core().share_buffers();
  return all_done;
}

}  // namespace accelerator

LocalSGD::LocalSGD(Accelerator& accelerator, const ModelBase& model, const LocalSGDOptions& options) {
  accelerator::check_steps(options.steps);
  accelerator::check_ours(accelerator::Training::of(accelerator), model);
  if (!options.enabled || accelerator.num_processes() == 1) return;
  if (accelerator::Training::of(accelerator).channels.zero()) {
    throw UsageError({.what = "LocalSGD was called under ZeRO",
                      .why = "ranks that share the parameters cannot go on with ones of their own",
                      .hint = "use stage 0"});
  }
  steps_ = std::make_unique<accelerator::LocalSteps>(accelerator::Training::of(accelerator), model, options.steps);
}

LocalSGD::~LocalSGD() noexcept(false) {
  if (steps_ && std::uncaught_exceptions() <= steps_->exceptions_at_begin()) steps_->leave();
}

void LocalSGD::step() {
  if (steps_) steps_->step();
}

}  // namespace hortator
