#include "accelerator/training/training.hpp"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <optional>

#include "accelerator/training/checked_options.hpp"
#include "comm/make_communicator.hpp"
#include "core/call_site.hpp"
#include "machine/memory/freed_memory.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "observe/progress/progress_bar.hpp"
#include "step/capture/step_recording.hpp"

namespace hortator::accelerator {
namespace {

observe::Audience audience_of(const runtime::World& world) {
  return world.topology().local_rank == 0 ? observe::Audience::people : observe::Audience::nobody;
}

observe::Trackers::Place place_of(const runtime::World& world) {
  return world.topology().rank == 0 ? observe::Trackers::Place::main : observe::Trackers::Place::elsewhere;
}

std::filesystem::path logging_dir(const ProjectOptions& options, const Project& project) {
  return options.logging_dir.empty() ? project.dir() / "logs" : options.logging_dir;
}

}  // namespace

Training::Training(AcceleratorOptions chosen, runtime::World& world)
    : options(checked(std::move(chosen))),
      precision(agreed_precision(options, world.comm())),
      project(options.project),
      accumulation(options.gradient_accumulation_steps, options.gradient_accumulation),
      loss_weights(models, options.reproducible ? options.virtual_shards : world.comm().size(), options.reproducible),
      stopping(world.comm(), background_save),
      progress(std::make_unique<observe::NotedProgress>(observe::make_progress(audience_of(world)),
                                                        [this] { report_status(); })),
      trackers(options.log_with, place_of(world), logging_dir(options.project, project)),
      status(world, project.dir()),
      world_(world) {
  if (device().is_cuda()) {
    at::globalContext().setAllowTF32CuBLAS(options.tf32);
    at::globalContext().setAllowTF32CuDNN(options.tf32);
  }
  // mpirun hands variables to other hosts only when told to.
  mpi::same_on_all(host(),
                   text::concat("ZeRO stage ", options.zero.stage.value_or(0), ", ",
                                text::count(options.gradient_accumulation_steps, "micro-step")),
                   "what the program, HORTATOR_ZERO_STAGE or HORTATOR_GRADIENT_ACCUMULATION_STEPS ask for");
  connect();
}

void Training::settle_seed() {
  if (!seed_) seed_ = mpi::broadcast(host(), at::globalContext().defaultGenerator(at::kCPU).current_seed());
}

const mpi::Communicator& Training::first_ranks(int count) {
  const auto known = first_ranks_.find(count);
  return known != first_ranks_.end() ? known->second : first_ranks_.emplace(count, host().first(count)).first->second;
}

comm::Communicator& Training::communicator_of(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_cpu() ? device_communicator() : *on_cpu_;
}

void Training::note_backward() {
  status.count_backward(sync_gradients());
  if (status.is_measured() && gradient_bytes_ == 0) gradient_bytes_ = gradient_bytes();
  report_status();
}

void Training::backward(const at::Tensor& loss) {
  if (auto* recording = session->recording()) {
    recording->before_replay([this] { note_backward(); });
    recording->after_replay([this, loss = loss.detach()] { loss_check.check(loss); });
  } else {
    loss_check.check(loss);
    note_backward();
  }
  const auto start = scaled(loss);
  if (reproducing) reproducing->check_backward_counts();
  if (reproducing || host().size() == 1) return start.backward();
  std::optional<AnyCallSite> anywhere;
  if (may_lack_ranks()) anywhere.emplace();  // those without batches follow from elsewhere
  backward_pass.run(start);
  agree_on_models();
  synchronise_gradients();
}

// Those without batches are not here: the others announce what they send.
void Training::agree_on_models() {
  const auto sends = [](const auto& model) { return model->sends_gradients(); };
  if (may_lack_ranks() || std::none_of(models.begin(), models.end(), sends)) return;
  try {
    common_pass->agree();
  } catch (...) {
    abandon("ranks have reached different models");  // gradients are under way that some ranks never send
    throw;
  }
}

// With virtual shards a rank's gradients are ready when those of its last shard are: the loop decides.
bool Training::sync_gradients() const {
  const auto* loader = active_loader();
  return accumulation.sync_gradients() && (loader == nullptr || loader->ends_step());
}

bool Training::was_skipped(const torch::optim::Optimizer& optimizer) const {
  const auto skipped = [](const auto& one) { return one->step_was_skipped(); };
  const auto is_it = [&](const auto& one) { return one->wraps(optimizer); };
  const auto watched = std::find_if(optimizers.begin(), optimizers.end(), is_it);
  return watched == optimizers.end() ? std::any_of(optimizers.begin(), optimizers.end(), skipped) : skipped(*watched);
}

bool Training::is_partial() const { return reproducing && !sync_gradients(); }

bool Training::may_lack_ranks() const {
  const auto lacks_ranks = [](const auto& model) { return model->may_lack_ranks(); };
  return std::any_of(models.begin(), models.end(), lacks_ranks);
}

bool Training::is_between_steps() const { return sync_gradients() && !may_lack_ranks(); }

std::shared_ptr<parallel::SharedStatistics> Training::shared_statistics() {
  if (!shared_statistics_) {
    auto& device = device_communicator();
    shared_statistics_ = std::make_shared<parallel::SharedStatistics>(device.split(0, device.rank()));
  }
  return shared_statistics_;
}

// All of them, also after one that cannot: others may wait in any.
bool Training::abandon(std::string_view reason) noexcept {
  bool all_are_free = common_pass->abandon(reason);
  const auto leave = [&](auto* left) { all_are_free &= left == nullptr || left->abandon(reason); };
  leave(on_cpu_.get());
  leave(on_device_.get());
  leave(shared_statistics_.get());
  leave(zero.get());
  // Ranks of ZeRO on devices meet in MPI as well, from where nobody can call them back.
  return all_are_free && (!on_device_ || !zero);
}

// Ranks have left collectives that others were in: nothing can be brought together.
void Training::start_afresh() {
  forget(ReleaseMode::local);
  empty_cache();
  scaler.reset();
  reproducing.reset();
  zero.reset();
  common_pass.reset();
  on_device_.reset();
  on_cpu_.reset();
  connect();
}

void Training::connect() {
  const auto checks = comm::checks_from_environment();
  on_cpu_ = comm::make_communicator(world_.comm(), at::kCPU, checks, world_.collective_timeout());
  if (!device().is_cpu())
    on_device_ = comm::make_communicator(world_.comm(), device(), checks, world_.collective_timeout());
  common_pass = std::make_unique<parallel::CommonPass>(on_cpu_->split(0, host().rank()), host());
  if (precision == Precision::fp16 && options.grad_scaler.enabled)
    scaler = std::make_unique<step::GradScaler>(options.grad_scaler, device_communicator(), device());
  if (options.reproducible)
    reproducing = std::make_unique<Reproducing>(options.virtual_shards, device_communicator(), device());
  if (options.zero.stage.value_or(0) > 0)
    zero = std::make_unique<ZeroRanks>(options.zero, world_, device_communicator());
}

at::Tensor Training::mean_loss(const at::Tensor& loss) {
  if (reproducing || may_lack_ranks()) {
    throw UsageError({.what = text::concat("step(closure) was called ",
                                           reproducing ? "with reproducible = true" : "within join_uneven_inputs"),
                      .why = "not all ranks come to one loss of all of them",
                      .hint = "leave it out for this optimizer, or use one that steps without a closure"});
  }
  auto mean = loss.clone();
  communicator_of(mean).all_reduce(mean, comm::ReduceOp::mean).wait();
  return mean;
}

void Training::synchronise_gradients() {
  if (reproducing) {
    if (!is_partial() && reproducing->shards().synchronise()) loss_weights.settle(device_communicator());
    return;
  }
  for (const auto& model : models) model->finish_gradients();
}

const LoaderBase* Training::active_loader() const {
  const LoaderBase* latest = nullptr;
  for (const auto& loader : loaders) {
    if (loader.iterating() && (latest == nullptr || loader.started() > latest->started())) latest = &loader;
  }
  return latest;
}

step::ParameterNames Training::parameter_names() const {
  step::ParameterNames names;
  for (std::size_t i = 0; i < models.size(); ++i) {
    for (const auto& item : models[i]->module().named_parameters()) {
      names.emplace(item.value().unsafeGetTensorImpl(), std::to_string(i) + "/" + item.key());
    }
  }
  return names;
}

step::ParameterNames Training::stepped_names() const {
  auto names = parameter_names();
  for (const auto& optimizer : optimizers) {
    if (optimizer->shards() == nullptr) continue;
    for (const auto& group : optimizer->shards()->groups()) {
      for (const auto& part : group) {
        const auto named = names.find(part.parameter.unsafeGetTensorImpl());
        if (named != names.end()) names.emplace(part.slice.unsafeGetTensorImpl(), named->second);
      }
    }
  }
  return names;
}

step::GradientHolders Training::gradient_holders(const std::vector<at::Tensor>& parameters) const {
  step::GradientHolders holders;
  for (const auto& parameter : parameters) {
    std::optional<std::size_t> number;
    for (const auto& model : models) {
      if (!model->scatters_gradients() || number) continue;
      number = model->flat()->find(parameter);
      if (number) holders.shards.push_back(model->flat()->slice(*number));
    }
    if (!number) holders.whole.push_back(parameter);
  }
  return holders;
}

void Training::shard_optimizers() const {
  for (const auto& optimizer : optimizers) {
    for (const auto& model : models) {
      if (optimizer->shards() != nullptr && model->flat() != nullptr) optimizer->shards()->take_over(*model->flat());
    }
  }
}

step::TensorSet Training::parameters() const {
  step::TensorSet parameters;
  for (const auto& model : models) {
    for (const auto& parameter : model->module().parameters()) parameters.insert(parameter.unsafeGetTensorImpl());
  }
  return parameters;
}

// Optimizers first: parameters are then in use where somebody will use them.
void Training::release_shards(ReleaseMode mode) {
  for (const auto& optimizer : optimizers) {
    if (optimizer->shards() != nullptr) optimizer->shards()->give_back_parameters();
  }
  std::vector<std::unique_ptr<parallel::FlatParameters>> all;
  for (const auto& model : models) all.push_back(model->release());
  for (const auto& flat : all) {
    if (flat) flat->release(mode);
  }
}

void Training::forget(ReleaseMode mode) {
  for (const auto& model : models) model->retire();
  release_shards(mode);
  session->end();
  session = std::make_shared<step::AcceleratorSession>();
  accumulation.restart();
  loss_weights.forget_all();
  if (reproducing) reproducing->forget();
  models.clear();
  optimizers.clear();
  loaders.clear();
  schedules.clear();
  objects.clear();
  shared_statistics_.reset();
  if (common_pass) common_pass->forget_all();  // none where ranks could not be joined
}

void Training::empty_cache() const {
  machine::return_freed_memory();
  if (!device().is_cpu()) c10::getDeviceAllocator(device().type())->emptyCache();
}

void Training::free_memory() {
  settle_steps();
  for (const auto& optimizer : optimizers) {
    if (optimizer->shards() != nullptr) optimizer->shards()->give_back();
  }
  forget();
  empty_cache();
}

}  // namespace hortator::accelerator
