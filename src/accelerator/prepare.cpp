#include <algorithm>

#include "accelerator/training.hpp"
#include "base/text.hpp"
#include "io/hdf5_version.hpp"
#include "mpi/collectives.hpp"
#include "runtime/banner.hpp"
#include "train/schedule_core.hpp"

namespace hortator {
namespace {

// The shuffled order must be the same on all ranks, so rank 0's seed counts. @collective
std::uint64_t seed_of_data(const accelerator::Training& training) {
  const auto seed = training.options.data.seed.value_or(at::globalContext().defaultGenerator(at::kCPU).current_seed());
  return mpi::broadcast(training.host(), seed);
}

std::string effective_batches(const std::vector<LoaderBase>& loaders) {
  std::vector<std::string> lines;
  for (const auto& loader : loaders) {
    lines.push_back(text::concat(loader.total_batch_size(), " of ", text::count(loader.dataset_size(), "sample")));
  }
  return text::join(lines, "; ");
}

}  // namespace

std::shared_ptr<train::ModelCore> Accelerator::make_model(torch::nn::Module& module) {
  for (const auto& model : training_->models) {
    if (&model->module() == &module) return model;
  }
  if (options().device_placement) module.to(device());
  const train::DataParallel parallel{.communicator = training_->device_communicator(),
                                     .host = training_->host(),
                                     .options = training_->options.ddp,
                                     .pass = training_->backward_pass};
  auto model = std::make_shared<train::ModelCore>(module, text::concat("model ", training_->models.size()),
                                                  training_->session, parallel, training_->parameters());
  if (train::has_synchronized_norms(module)) {
    train::join_synchronized_norms(module, training_->shared_statistics());
  }
  training_->models.push_back(model);
  return model;
}

std::shared_ptr<train::OptimizerCore> Accelerator::make_optimizer(torch::optim::Optimizer& optimizer) {
  for (const auto& prepared : training_->optimizers) {
    if (prepared->wraps(optimizer)) return prepared;
  }
  auto prepared = std::make_shared<train::OptimizerCore>(
      optimizer, training_->session, [training = training_.get()] { training->synchronise_gradients(); });
  training_->optimizers.push_back(prepared);
  return prepared;
}

void Accelerator::attach(const LoaderBase& loader) {
  const auto same = [&](const LoaderBase& other) { return other.shares_state_with(loader); };
  if (std::any_of(training_->loaders.begin(), training_->loaders.end(), same)) return;
  LoaderBase prepared = loader;
  prepared.bind({.rank = process_index(),
                 .world = num_processes(),
                 .split_batches = options().data.split_batches,
                 .even_batches = options().data.even_batches,
                 .device = device(),
                 .device_placement = options().device_placement,
                 .seed = seed_of_data(*training_),
                 .check_alive = [session = training_->session] { session->check_alive("loader"); }});
  training_->loaders.push_back(prepared);
}

// The reference's rule: a schedule counts the batches of all ranks, unless each batch is one of all ranks already.
void Accelerator::attach(const Schedule& schedule) {
  if (schedule.core().is_attached_to(*training_->session)) return;
  const bool once = options().schedule_step == ScheduleStep::per_update || options().data.split_batches;
  schedule.core().attach(training_->session, once ? 1 : num_processes());
  training_->schedules.push_back(schedule);
}

// With the first prepare() and not before: only then is the effective batch size known.
void Accelerator::announce_once() {
  if (std::exchange(training_->announced, true)) return;
  runtime::BannerExtras extras{.libraries = {io::hdf5_version()}, .lines = {}};
  if (!training_->loaders.empty()) extras.lines.emplace_back("effective batch", effective_batches(training_->loaders));
  runtime::announce(world(), extras);
}

}  // namespace hortator
