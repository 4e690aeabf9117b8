#include "accelerator/scopes/takeover.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <variant>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "step/precision/grad_scaler.hpp"
#include "step/state_broadcast.hpp"

namespace hortator::accelerator {
namespace {

// Before the optimizers: rates that the user has set by hand since the last step are among their options.
void take_over_schedules(Training& training, const mpi::Communicator& host, int rank) {
  for (auto& schedule : training.prepared.schedules()) {
    step::broadcast_state(
        host, rank, [&] { return schedule.state(); }, [&](const StateDict& state) { schedule.load(state); });
  }
}

void take_over_optimizers(Training& training, const mpi::Communicator& host, int rank) {
  const auto names = training.prepared.stepped_names();
  training.control.settle_steps();
  for (const auto& optimizer : training.prepared.optimizers()) {
    optimizer->forget_step_ahead(mpi::broadcast(host, optimizer->step_was_skipped(), rank));
    step::broadcast_state(
        host, rank, [&] { return step::save_optimizer(optimizer->optimizer(), names); },
        [&](const StateDict& state) { optimizer->load(names, state); });
  }
}

// Ranks with steps of their own (LocalSGD) have scales of their own.
void take_over_scale(Training& training, const mpi::Communicator& host, int rank) {
  auto* const scaler = training.control.scaler();
  if (scaler == nullptr) return;
  step::broadcast_state(
      host, rank, [&] { return scaler->state(); }, [&](const StateDict& state) { scaler->load(state); });
}

// A rank that left its pass early is still in the epoch that the others have completed. Positions that differ are
// given up: the next pass begins at the first batch on all ranks.
void take_over_epochs(Training& training, const mpi::Communicator& host, int rank) {
  for (auto& loader : training.prepared.loaders()) {
    struct Position {
      std::int64_t epoch;
      std::int64_t samples;
      std::int64_t is_in_loop;
      bool operator==(const Position&) const = default;
    };
    const auto all = mpi::all_gather(host, Position{loader.epoch(), loader.position(), loader.iterating() ? 1 : 0});
    const bool in_loop = std::any_of(all.begin(), all.end(), [](const auto& one) { return one.is_in_loop != 0; });
    if (in_loop || std::equal(all.begin() + 1, all.end(), all.begin())) continue;
    const auto epoch = all[static_cast<std::size_t>(rank)].epoch;
    loader.set_epoch(epoch + 1);  // drops the position
    loader.set_epoch(epoch);
  }
}

bool holds_tensors(const StateDict& state) {
  const auto is_tensor = [](const auto& entry) { return std::holds_alternative<at::Tensor>(entry.second); };
  return std::any_of(state.values().begin(), state.values().end(), is_tensor);
}

// Checkpoints keep one copy of an object's tensors, so they must be equal. The numbers beside them (a count of updates)
// belong to them.
void take_over_objects(Training& training, const mpi::Communicator& host, int rank) {
  for (const auto& object : training.prepared.objects()) {
    const auto save = [&] {
      StateDict state;
      object.save(state);
      return holds_tensors(state) ? state : StateDict();
    };
    const auto load = [&](const StateDict& state) {
      if (!state.empty()) object.load(state);
    };
    step::broadcast_state(host, rank, save, load);
  }
}

}  // namespace

void require_takeover(const Training& training, std::string_view scope) {
  const auto is_kept = [](const auto& optimizer) { return !optimizer->forgets_on_save(); };
  if (std::ranges::all_of(training.prepared.optimizers(), is_kept)) return;
  throw UsageError({.what = text::concat(scope, " was called with an optimizer that saves nothing"),
                    .why = "at the end all ranks take over the state of one, through the optimizer's save() and load()",
                    .hint = "override both, with empty functions if it has no state"});
}

void take_over_steps(Training& training, const mpi::Communicator& host, int rank) {
  take_over_schedules(training, host, rank);
  take_over_optimizers(training, host, rank);
  take_over_scale(training, host, rank);
  take_over_epochs(training, host, rank);
  take_over_objects(training, host, rank);
  auto& accumulation = training.control.accumulation();
  accumulation.resume_at(mpi::broadcast(host, accumulation.position(), rank));
}

}  // namespace hortator::accelerator
