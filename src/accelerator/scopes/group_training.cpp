#include "accelerator/scopes/group_training.hpp"

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {

GroupTraining::GroupTraining(Training& training, step::ModelCore& model, const parallel::RankGroup& group)
    : training_(training),
      model_(model),
      group_(group),
      pass_(group.on_cpu.split(0, group.index()), group.host),
      binding_(binding(model.name())),
      of_ignored_(binding(text::concat(model.name(), ", its parameters in zero.ignore"))) {
  model_.finish_gradients();
  model_.train_among(&binding_, &of_ignored_);
  for (const auto& optimizer : training_.prepared.optimizers())
    if (auto* const shards = optimizer->shards()) shards->step_among(group_.host);
}

GroupTraining::~GroupTraining() {
  for (const auto& optimizer : training_.prepared.optimizers())
    if (auto* const shards = optimizer->shards()) shards->step_among(training_.host());
  model_.train_among(nullptr, nullptr);
}

// Votes and times are those of all ranks, and wait for the end of the scope.
parallel::DataParallel GroupTraining::binding(const std::string& name) {
  return {.communicator = group_.on_device,
          .host = group_.host,
          .options = training_.options().ddp,
          .pass = training_.control.backward_pass(),
          .signals = training_.device().is_cpu() ? parallel::SignalPath::behind_gradients
                                                 : parallel::SignalPath::from_host_to_host,
          .sharding = &training_.channels.zero()->sharding(),
          .common_pass = pass_.add_model(name),
          .device = training_.device(),
          .within_shards = true};
}

}  // namespace hortator::accelerator
