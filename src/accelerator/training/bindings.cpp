#include "accelerator/training/bindings.hpp"

#include <ATen/Context.h>

#include "accelerator/channels/channels.hpp"
#include "accelerator/channels/random_state.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/protection/straggler_report.hpp"
#include "accelerator/training/reproducing.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "accelerator/training/unrecorded.hpp"
#include "core/hash.hpp"
#include "data/loader/dispatcher.hpp"
#include "mpi/collectives.hpp"
#include "observe/operators/step_recording.hpp"
#include "parallel/data_parallel/common_pass.hpp"
#include "step/precision/precision.hpp"

namespace hortator::accelerator {
namespace {

// The shuffled order must be the same on all ranks, so rank 0's seed counts. @collective
std::uint64_t seed_of_data(const Training& training) {
  const auto seed =
      training.options().data.seed.value_or(at::globalContext().defaultGenerator(at::kCPU).current_seed());
  return mpi::broadcast(training.host(), seed);
}

// Streams that cannot be cut into parts are read once a node unless the user says otherwise, or their batches stay
// where they are. @collective
std::shared_ptr<data::Dispatcher> dispatcher_for(const LoaderBase& loader, const Training& training,
                                                 bool device_placement) {
  const bool by_default = device_placement && loader.is_stream() && loader.can_travel() && !loader.has_shards() &&
                          !training.options().reproducible;
  if (!training.options().data.dispatch_batches.value_or(by_default)) return nullptr;
  if (!loader.can_travel()) data::throw_cannot_travel();
  return std::make_shared<data::Dispatcher>(training.channels.node(), training.host(), training.data().index());
}

// Ranks that read parts of a stream must stop together. Reproducible runs must not depend on the number of parts.
std::function<std::vector<std::int64_t>(std::int64_t)> exchange_for(const LoaderBase& loader,
                                                                    const Training& training) {
  const auto& options = training.options();
  const bool in_parts = loader.has_shards() && !options.data.dispatch_batches.value_or(false) && !options.reproducible;
  if (!in_parts || training.data().size() == 1) return {};
  return [&host = training.data().host, session = training.control.session()](std::int64_t value) {
    session->check_alive("loader");
    return mpi::all_gather(host, value);
  };
}

/// Random numbers while a batch is read that several ranks compute together: they depend on the batch, so that data
/// sets which draw some give these ranks the same. Those of the model stay what they are without reading.
struct ReadingNumbers {
  Training& training;
  StateDict of_model = {};

  void begin(const BatchTurn& turn) {
    if (turn.place < 0) return;
    of_model = random_state(training.device());
    auto key = training.seed();
    for (const auto number : {turn.epoch, turn.position, turn.place, std::int64_t{training.data().index()}})
      key = core::mix(key, static_cast<std::uint64_t>(number));
    seed_random_state(training.device(), key);
  }
  void end() { restore_random_state(training.device(), of_model); }
};

// Refers to the loader by its index: a copy of it within its own state would keep it alive forever.
void observe_batches(LoaderBinding& binding, Training& training, std::size_t loader) {
  const auto session = training.control.session();
  if (training.control.reproducing()) {
    binding.before_batch = [&training, session, loader](const BatchTurn& turn) {
      session->check_alive("loader");
      {
        const Unrecorded bookkeeping(training.recording != nullptr);
        training.control.reproducing()->before_batch(training.prepared.loaders().at(loader), turn, training.seed());
      }
      if (training.recording && turn.place >= 0) training.recording->begin_part(static_cast<int>(turn.place));
    };
    binding.before_part = [&training](int part) { training.control.reproducing()->before_part(part); };
  } else if (training.data().size() < training.host().size()) {
    const auto numbers = std::make_shared<ReadingNumbers>(training);
    binding.before_batch = [numbers, session](const BatchTurn& turn) {
      session->check_alive("loader");
      numbers->begin(turn);
    };
    binding.after_batch = [numbers] { numbers->end(); };
  }
}

}  // namespace

parallel::DataParallel model_binding(Training& training, const std::string& name) {
  const auto& ranks = training.averaging();
  auto& control = training.control;
  // A bucket of experts may be the last, and does not reach all ranks.
  const auto& zero = training.channels.zero();
  const bool has_two_passes = zero && zero->sharding().scatters_gradients() && !zero->sharding().ignored.empty();
  const bool is_behind = training.device().is_cpu() && training.channels.expert_ranks() == nullptr;
  return {.communicator = ranks.on_device,
          .host = ranks.host,
          .options = training.options().ddp,
          .pass = control.backward_pass(),
          // Votes must reach all ranks: gradients carry them only if all ranks average them together.
          .votes = ranks.size() == training.host().size() ? &control.stopping().votes() : nullptr,
          .times = control.stragglers() != nullptr ? &control.stragglers()->times() : nullptr,
          .signals = is_behind ? parallel::SignalPath::behind_gradients : parallel::SignalPath::from_host_to_host,
          .sharding = training.channels.zero() ? &training.channels.zero()->sharding() : nullptr,
          .common_pass = control.common_pass().add_model(name),
          .common_pass_of_ignored = has_two_passes
                                        ? control.common_pass().add_model(name + ", its parameters in zero.ignore")
                                        : parallel::CommonPass::Model(),
          .device = training.device(),
          .is_mixed = step::autocast_type(control.precision()).has_value(),
          .everyone = &training.channels.mesh().all(),
          .tensor = training.channels.tensor_ranks(),
          .plan = &training.options().parallel.plan,
          .sequence = training.options().parallel.sequence,
          .experts = training.channels.expert_ranks(),
          .holders = training.channels.holders(),
          .counted = training.channels.counted_ranks(),
          .stages = training.channels.stages()};
}

LoaderBinding loader_binding(Training& training, const LoaderBase& loader, bool device_placement) {
  const auto& data = training.data();
  const auto& options = training.options().data;
  auto* reproducing = training.control.reproducing();
  LoaderBinding binding{.rank = data.index(),
                        .world = data.size(),
                        .parts = reproducing != nullptr ? reproducing->batches() : 1,
                        .joined = reproducing != nullptr ? reproducing->joined() : 1,
                        .split_batches = options.split_batches,
                        .even_batches = options.even_batches,
                        .device = training.device(),
                        .device_placement = device_placement,
                        .non_blocking = options.non_blocking,
                        .seed = seed_of_data(training),
                        .number = training.prepared.loaders().size(),
                        .dispatcher = dispatcher_for(loader, training, device_placement),
                        .gather_rows = exchange_for(loader, training),
                        .check_alive = [session = training.control.session()] { session->check_alive("loader"); }};
  observe_batches(binding, training, training.prepared.loaders().size());
  return binding;
}

}  // namespace hortator::accelerator
