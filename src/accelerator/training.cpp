#include "accelerator/training.hpp"

#include "comm/make_communicator.hpp"
#include "track/progress_bar.hpp"

namespace hortator::accelerator {
namespace {

std::unique_ptr<comm::Communicator> make_for_device(const runtime::World& world, comm::Checks checks) {
  if (world.device().is_cpu()) return nullptr;
  return comm::make_communicator(world.comm(), world.device(), checks);
}

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
      world_(world),
      on_cpu_(comm::make_communicator(world.comm(), at::kCPU, comm::checks_from_environment())),
      on_device_(make_for_device(world, comm::checks_from_environment())) {}

comm::Communicator& Training::communicator_of(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_cpu() ? device_communicator() : *on_cpu_;
}

std::shared_ptr<train::SharedStatistics> Training::shared_statistics() {
  if (!shared_statistics_) {
    auto& device = device_communicator();
    shared_statistics_ = std::make_shared<train::SharedStatistics>(device.split(0, device.rank()));
  }
  return shared_statistics_;
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
  shared_statistics_.reset();
}

}  // namespace hortator::accelerator
