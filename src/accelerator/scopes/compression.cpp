#include "accelerator/scopes/compression.hpp"

#include <string>
#include <vector>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/state/snapshot.hpp"
#include "accelerator/training/training.hpp"
#include "accelerator/training/unrecorded.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "parallel/low_rank/power_sgd.hpp"

namespace hortator::accelerator {
namespace {

/// A run on other ranks shares out what all ranks had kept. A checkpoint without this state is one of a run that sent
/// whole gradients, which had kept nothing.
void load(parallel::PowerSgd& power, const checkpoint::Reader& reader, const std::string& folder,
          const Training& training) {
  const int rank = training.host().rank(), world = training.host().size();
  const bool is_same = has_same_ranks(training, reader, world);
  std::vector<StateDict> of_ranks;
  for (int saved = 0; saved < reader.world_size(); ++saved) {
    if (!is_same || saved == rank) of_ranks.push_back(reader.own(saved, folder));
  }
  if (of_ranks.front().empty()) return;
  const bool lacks_some = power.load(of_ranks, is_same ? std::optional<std::size_t>(0) : std::nullopt);
  if (lacks_some && rank == 0)
    log::warn("errors of PowerSGD begin at zero where the checkpoint's ranks had other parts of the gradients");
}

}  // namespace

std::shared_ptr<const BucketHook> low_rank_average(Training& training) {
  const auto& options = training.options().ddp;
  if (options.comm_hook != DDPCommunicationHookType::power_sgd || training.averaging().size() == 1) return nullptr;
  const auto power = std::make_shared<parallel::PowerSgd>(options.power_sgd);
  const auto folder = text::concat("power_sgd/", training.prepared.models().size());
  training.prepared.add_part(
      {.save = [=](checkpoint::Snapshot& snapshot) { snapshot.own.put_all(folder, power->state()); },
       .misfits = [](const checkpoint::Reader&) { return std::vector<std::string>(); },
       .load = [=, &training](const checkpoint::Reader& reader) { load(*power, reader, folder, training); },
       .remember = [=] { return power->remember(); }});
  return std::make_shared<const BucketHook>([power, &training](BucketExchange& bucket) {
    const Unrecorded bookkeeping(training.recording != nullptr);
    power->average(bucket);
  });
}

}  // namespace hortator::accelerator
