#include "accelerator/scopes/local_steps.hpp"

#include <algorithm>
#include <exception>

#include "accelerator/scopes/takeover.hpp"
#include "mpi/collectives.hpp"

namespace hortator::accelerator {
namespace {

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
      parameters_(parameters_of(model), training.data().on_device),
      local_({model_}),
      exceptions_(std::uncaught_exceptions()) {}

void LocalSteps::step() {
  model_.core().check_alive();
  if (++taken_ % every_ == 0) average(/*done=*/false);
}

void LocalSteps::leave() {
  while (!average(/*done=*/true)) {
  }
  const auto steps = mpi::all_gather(training_.host(), taken_);
  const auto most = std::max_element(steps.begin(), steps.end());
  if (*most != *std::min_element(steps.begin(), steps.end()))
    take_over_steps(training_, static_cast<int>(most - steps.begin()));
}

bool LocalSteps::average(bool done) {
  const bool all_done = mpi::all_reduce(training_.data().host, done ? 1 : 0, MPI_MIN) == 1;
  parameters_.run();
  model_.core().share_buffers();
  return all_done;
}

}  // namespace hortator::accelerator
