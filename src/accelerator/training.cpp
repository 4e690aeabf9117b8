#include "accelerator/training.hpp"

#include <c10/core/CachingDeviceAllocator.h>

#include "comm/make_communicator.hpp"
#include "track/progress_bar.hpp"

namespace hortator::accelerator {
namespace {

AcceleratorOptions checked(AcceleratorOptions options) {
  train::check(options.ddp);
  return options;
}

track::Audience audience_of(const runtime::World& world) {
  return world.topology().local_rank == 0 ? track::Audience::people : track::Audience::nobody;
}

}  // namespace

Training::Training(AcceleratorOptions chosen, runtime::World& world)
    : options(checked(std::move(chosen))),
      project(options.project),
      progress(track::make_progress(audience_of(world))),
      world_(world) {
  connect();
}

comm::Communicator& Training::communicator_of(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_cpu() ? device_communicator() : *on_cpu_;
}

bool Training::abandon(std::string_view reason) noexcept {
  const bool cpu = on_cpu_->abandon(reason);
  return (!on_device_ || on_device_->abandon(reason)) && cpu;
}

void Training::start_afresh() {
  free_memory();
  on_device_.reset();
  on_cpu_.reset();
  connect();
}

void Training::connect() {
  const auto checks = comm::checks_from_environment();
  on_cpu_ = comm::make_communicator(world_.comm(), at::kCPU, checks);
  if (!device().is_cpu()) on_device_ = comm::make_communicator(world_.comm(), device(), checks);
}

void Training::synchronise_gradients() {
  for (const auto& model : models) model->reducer().finish();
}

const LoaderBase* Training::active_loader() const {
  const LoaderBase* latest = nullptr;
  for (const auto& loader : loaders) {
    if (loader.iterating() && (latest == nullptr || loader.started() > latest->started())) latest = &loader;
  }
  return latest;
}

train::ParameterNames Training::parameter_names() const {
  train::ParameterNames names;
  for (std::size_t i = 0; i < models.size(); ++i) {
    for (const auto& item : models[i]->module().named_parameters()) {
      names.emplace(item.value().unsafeGetTensorImpl(), std::to_string(i) + "/" + item.key());
    }
  }
  return names;
}

train::TensorSet Training::parameters() const {
  train::TensorSet parameters;
  for (const auto& model : models) {
    for (const auto& parameter : model->module().parameters()) parameters.insert(parameter.unsafeGetTensorImpl());
  }
  return parameters;
}

void Training::forget() {
  for (const auto& model : models) model->retire();
  session->end();
  session = std::make_shared<train::Session>();
  models.clear();
  optimizers.clear();
  loaders.clear();
  schedules.clear();
  objects.clear();
}

void Training::free_memory() {
  forget();
  if (!device().is_cpu()) c10::getDeviceAllocator(device().type())->emptyCache();
}

}  // namespace hortator::accelerator
