#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <optional>

#include "accelerator/channels/channels.hpp"
#include "accelerator/state/divided_state.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "accelerator/weights/loading.hpp"
#include "accelerator/weights/module_filling.hpp"
#include "core/activity/activity.hpp"
#include "core/log.hpp"
#include "mpi/agree.hpp"

namespace hortator {
namespace accelerator {
namespace {

void require_no_conversion(const LoadWeightsOptions& options) {
  if (!options.dtype) return;
  throw UsageError({.what = "load_checkpoint_in_model with a dtype got a model that is sharded or divided among ranks",
                    .why = "its parameters lie in memory of their type",
                    .hint = "convert the module before prepare(), or leave out dtype"});
}

void require_no_map(const LoadWeightsOptions& options) {
  if (options.device_map.empty()) return;
  throw UsageError({.what = "Accelerator::load_checkpoint_in_model got a device_map",
                    .why = "all ranks read together, each to where its model is",
                    .hint = "call hortator::load_checkpoint_in_model() on each rank, before prepare()"});
}

}  // namespace
}  // namespace accelerator

// On one node every rank reads: after the first one, from the system's cache. On several nodes each byte is read once
// and sent over the network, which is faster than a file system that serves many nodes.
void Accelerator::load_into(torch::nn::Module& module, const std::filesystem::path& checkpoint,
                            const LoadWeightsOptions& options) {
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  const auto& host = training_->host();
  const auto model = accelerator::find_model(*training_, module);
  if (model != nullptr) training_->control.refuse_lent_weights("load_checkpoint_in_model()");
  auto* divided = accelerator::divided_in(model.get());
  std::optional<accelerator::Loading> loading;
  mpi::all_or_none(host, [&] {
    accelerator::require_no_map(options);
    if (divided != nullptr || accelerator::shards_in(model.get()) != nullptr)
      accelerator::require_no_conversion(options);
    const parallel::WholeShapes shapes(divided);
    loading.emplace(module, checkpoint, options);
  });
  mpi::same_on_all(host, loading->outline(), "what is loaded into the model");
  if (is_main_process() && !loading->omissions().empty()) log::warn(loading->omissions());
  if (model != nullptr) training_->forget_protection();
  accelerator::fill_module(*loading, model.get(), training_->channels, num_nodes() == 1);
  if (model != nullptr && options.strict) model->note_equal();
}

void Accelerator::load_checkpoint_in_model(const ModelBase& model, const std::filesystem::path& checkpoint,
                                           const LoadWeightsOptions& options) {
  model.core().check_alive();
  load_into(model.core().module(), checkpoint, options);
}

}  // namespace hortator
