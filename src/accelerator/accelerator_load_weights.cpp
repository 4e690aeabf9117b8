#include <functional>
#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <optional>

#include "accelerator/state/divided_state.hpp"
#include "accelerator/training/training.hpp"
#include "accelerator/weights/divided_loading.hpp"
#include "accelerator/weights/loading.hpp"
#include "core/activity/activity.hpp"
#include "core/log.hpp"
#include "mpi/agree.hpp"
#include "weights/filling.hpp"

namespace hortator {
namespace accelerator {
namespace {

/// The module's sharded parameters; null if there are none, or while each rank has whole ones.
parallel::FlatParameters* shards_of(const Training& training, const torch::nn::Module& module) {
  const auto model = find_model(training, module);
  return model != nullptr && !model->is_lent() ? model->flat() : nullptr;
}

void require_no_conversion(const LoadWeightsOptions& options) {
  if (!options.dtype) return;
  throw UsageError({.what = "load_checkpoint_in_model with a dtype got a model that is sharded or divided among ranks",
                    .why = "its parameters lie in memory of their type",
                    .hint = "convert the module before prepare(), or leave out dtype"});
}

/// Cuts fillings of sharded parameters down to this rank's slices; keeps the others.
std::vector<weights::Filling> owned_parts(const std::vector<weights::Filling>& fillings,
                                          const parallel::FlatParameters& flat) {
  std::vector<weights::Filling> parts;
  for (const auto& filling : fillings) {
    const auto number = flat.find(filling.tensor);
    if (!number) {
      parts.push_back(filling);
    } else if (flat.owned(*number).size() > 0) {
      parts.push_back({filling.stored, flat.published_slice(*number), flat.owned(*number)});
    }
  }
  return parts;
}

// Reads each slice on the rank that owns it, and unsharded tensors on every rank. @collective
void load_shards(const Loading& loading, const std::vector<weights::Filling>& fillings, parallel::FlatParameters& flat,
                 const mpi::Communicator& host) {
  mpi::all_or_none(host, [&] {
    weights::fill(loading.source(), owned_parts(fillings, flat));
    for (const auto& filling : fillings) {
      if (const auto number = flat.find(filling.tensor)) flat.take_published(*number);
    }
  });
  flat.publish_all();
  mpi::all_or_none(host, [&] { loading.require_tied(); });
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
  const bool is_divided = model != nullptr && model->divided() != nullptr && !model->is_lent();
  std::optional<accelerator::Loading> loading;
  mpi::all_or_none(host, [&] {
    const parallel::WholeShapes shapes(is_divided ? model->divided() : nullptr);
    loading.emplace(module, checkpoint, options);
  });
  mpi::same_on_all(host, loading->outline(), "what is loaded into the model");
  if (is_main_process() && !loading->omissions().empty()) log::warn(loading->omissions());
  auto* flat = accelerator::shards_of(*training_, module);
  if (is_divided || flat != nullptr) mpi::all_or_none(host, [&] { accelerator::require_no_conversion(options); });
  const auto fillings = is_divided ? accelerator::load_divided(*loading, *model, training_->channels, num_nodes() == 1)
                                   : loading->fillings();
  if (flat != nullptr) return accelerator::load_shards(*loading, fillings, *flat, host);
  std::function<void()> fill;
  mpi::all_or_none(host, [&] {
    loading->prepare_module();
    fill = num_nodes() == 1
               ? [&] { weights::fill(loading->source(), fillings); }
               : weights::filling_together(training_->channels.communicator_of({}), loading->source(), fillings);
  });
  mpi::all_or_none(host, [&] {
    fill();
    loading->require_tied();
  });
}

void Accelerator::load_checkpoint_in_model(const ModelBase& model, const std::filesystem::path& checkpoint,
                                           const LoadWeightsOptions& options) {
  model.core().check_alive();
  load_into(model.core().module(), checkpoint, options);
}

}  // namespace hortator
