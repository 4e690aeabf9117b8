#include "accelerator/state/snapshot.hpp"

#include "accelerator/channels/channels.hpp"
#include "accelerator/channels/random_state.hpp"
#include "accelerator/interop/accelerate/python_order.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/state/divided_state.hpp"
#include "accelerator/state/sharded_state.hpp"
#include "accelerator/state/snapshot_paths.hpp"
#include "accelerator/state/staged_state.hpp"
#include "accelerator/training/run_output.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "step/gradients/protection.hpp"
#include "step/moments/optimizer_state.hpp"
#include "step/precision/grad_scaler.hpp"

namespace hortator::accelerator {
namespace {

// With late verdicts, "step was skipped" is saved so that the resumed run reports it as well.
StateDict scaler_state(const Training& training) {
  auto state = training.control.scaler()->state();
  for (std::size_t i = 0; training.control.scaler()->is_late() && i < training.prepared.optimizers().size(); ++i)
    state.put(numbered("skipped", i), training.prepared.optimizers()[i]->step_was_skipped());
  return state;
}

// Tensors of registered objects are common to all ranks, as the model's; numbers and strings are each rank's own.
void put_object(checkpoint::Snapshot& snapshot, const RegisteredObject& object) {
  StateDict state;
  object.save(state);
  for (const auto& [name, value] : state.values()) {
    const auto path = "objects/" + object.name + "/" + name;
    std::visit(
        [&](const auto& held) {
          using Held = std::decay_t<decltype(held)>;
          (std::is_same_v<Held, at::Tensor> ? snapshot.common : snapshot.own).put(path, held);
        },
        value);
  }
}

/// The run's own numbers.
void put_run(checkpoint::Snapshot& snapshot, const Training& training, std::int64_t next_iteration) {
  auto& common = snapshot.common;
  common.put("run/models", training.prepared.models().size());
  common.put("run/optimizers", training.prepared.optimizers().size());
  common.put("run/schedules", training.prepared.schedules().size());
  common.put("run/loaders", training.prepared.loaders().size());
  common.put("run/iteration", next_iteration);
  common.put("run/seed", training.seed());
  // Other ranks need not log: rank 0's value counts.
  snapshot.own.put("log/last_step", training.output.trackers().last_step());
  // Ranks with different numbers of batches may be at different places.
  snapshot.own.put("log/micro_steps", training.control.accumulation().position().taken);
  snapshot.own.put_all("random", random_state(training.device()));
}

/// Each rank writes a part of each tensor: where ranks have buffers of their own, all of them write rank 0's.
/// @collective
std::map<const void*, at::Tensor> buffers_of_first_rank(const Training& training) {
  std::map<const void*, at::Tensor> buffers;
  for (const auto& model : training.prepared.models()) buffers.merge(model->buffers_of_first_rank());
  return buffers;
}

/// Adds what this rank has of a snapshot. Local.
void put_own(SnapshotDraft& draft, const Training& training, std::int64_t next_iteration,
             const ModelSelection& selection) {
  auto& snapshot = draft.snapshot;
  auto& common = snapshot.common;
  training.control.settle_steps();
  for (std::size_t i = 0; i < training.prepared.models().size(); ++i) {
    if (selection.has_model(i))
      put_model(draft, numbered("models", i), training, *training.prepared.models()[i], selection.only_trainable);
  }
  if (selection.only_trainable) common.put("run/only_trainable", true);
  for (const auto model : selection.left_out) common.put(text::concat("run/left_out/", model), true);
  const auto names = training.prepared.stepped_names();
  for (std::size_t i = 0; i < training.prepared.optimizers().size(); ++i) {
    put_optimizer(draft, numbered("optimizers", i), training, *training.prepared.optimizers()[i], names);
    put_python_order(common, i, training.prepared.optimizers()[i]->optimizer(), names);
  }
  for (std::size_t i = 0; i < training.prepared.schedules().size(); ++i)
    common.put_all(numbered("schedules", i), training.prepared.schedules()[i].state());
  for (std::size_t i = 0; i < training.prepared.loaders().size(); ++i)
    common.put_all(numbered("loaders", i), training.prepared.loaders()[i].state());
  if (training.control.scaler()) common.put_all("scaler", scaler_state(training));
  if (auto* protection = training.control.protection())
    snapshot.own.put_all("protection", protection->losses().state());
  for (const auto& object : training.prepared.objects()) put_object(snapshot, object);
  for (const auto& part : training.prepared.parts()) {
    if (part.save) part.save(snapshot);
    if (part.draft) part.draft(draft);
  }
  put_run(snapshot, training, next_iteration);
}

}  // namespace

checkpoint::Snapshot take_snapshot(Training& training, std::int64_t next_iteration, const ModelSelection& selection) {
  share_buffers_of_stages(training);
  SnapshotDraft draft{.buffers = buffers_of_first_rank(training)};
  mpi::all_or_none(training.host(), [&] { put_own(draft, training, next_iteration, selection); });
  join_together(draft, training);
  add_other_stages(draft, training);
  return std::move(draft.snapshot);
}

}  // namespace hortator::accelerator
