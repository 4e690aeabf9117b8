#include "accelerator/weights/module_filling.hpp"

#include <functional>

#include "accelerator/weights/divided_loading.hpp"
#include "mpi/agree.hpp"
#include "weights/filling.hpp"

namespace hortator::accelerator {
namespace {

/// Cuts fillings of sharded parameters down to this rank's slices; keeps the others.
std::vector<weights::Filling> own_slices(const std::vector<weights::Filling>& fillings,
                                         const parallel::ShardedModel& sharded) {
  std::vector<weights::Filling> own;
  for (const auto& filling : fillings) {
    const auto found = sharded.find(filling.tensor);
    if (!found) {
      own.push_back(filling);
    } else if (found.owned().size() > 0) {
      own.push_back({filling.stored, found.slice(), found.owned()});
    }
  }
  return own;
}

}  // namespace

parallel::DividedModule* divided_in(const step::ModelCore* model) {
  return model != nullptr && !model->is_lent() ? model->divided() : nullptr;
}

parallel::ShardedModel* shards_in(const step::ModelCore* model) {
  return model != nullptr && !model->is_lent() ? model->sharded() : nullptr;
}

void fill_module(const Loading& loading, const step::ModelCore* model, Channels& channels, bool each_reads) {
  const auto& host = channels.host();
  const auto fillings =
      divided_in(model) != nullptr ? load_divided(loading, *model, channels, each_reads) : loading.fillings();
  if (auto* sharded = shards_in(model)) {
    mpi::all_or_none(host, [&] { weights::fill(loading.source(), own_slices(fillings, *sharded)); });
    sharded->publish_all();
    return mpi::all_or_none(host, [&] { loading.require_tied(); });
  }
  std::function<void()> fill;
  mpi::all_or_none(host, [&] {
    loading.prepare_module();
    fill = each_reads ? [&] { weights::fill(loading.source(), fillings); }
                      : weights::filling_together(channels.communicator_of({}), loading.source(), fillings);
  });
  mpi::all_or_none(host, [&] {
    fill();
    loading.require_tied();
  });
}

}  // namespace hortator::accelerator
