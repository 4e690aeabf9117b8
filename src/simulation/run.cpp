#include "simulation/run.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <hortator/training/random.hpp>
#include <span>

#include "accelerator/training/training.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "runtime/identity/mpi_use.hpp"
#include "runtime/identity/outcome.hpp"
#include "simulation/bound_array.hpp"
#include "simulation/communicator_of.hpp"
#include "simulation/kept_array.hpp"
#include "simulation/local_outcome.hpp"

namespace hortator::simulation {
namespace {

/// The settings as rank 0 reads them. @collective
RunSettings read_for_all(const mpi::Communicator& comm, const char* file) {
  std::string name;
  std::string content;
  mpi::all_or_none(comm, [&] {
    if (comm.rank() != 0) return;
    if (file == nullptr) throw UsageError({.what = "hortator_begin got no settings file", .hint = "pass its name"});
    name = file;
    content = read_settings_file(name);
  });
  content = mpi::broadcast(comm, std::string_view(content));
  name = mpi::broadcast(comm, std::string_view(name));
  RunSettings settings;
  mpi::all_or_none(comm, [&] { settings = read_run_settings(parse_settings(content, name), name); });
  return settings;
}

/// Throws on all ranks unless all have the same pause, from 0. @collective
void require_same_pause(const mpi::Communicator& comm, double every) {
  const bool is_valid = every >= 0 && !std::isinf(every);
  std::array<double, 3> least = {is_valid ? 1.0 : 0.0, is_valid ? every : 0.0, is_valid ? -every : 0.0};
  mpi::all_reduce(comm, std::span<double>(least), MPI_MIN);
  if (least[0] > 0 && least[1] == -least[2]) return;
  throw UsageError({.what = text::concat("hortator_save got ", every, " seconds on this rank"),
                    .why = "the number of a rank is not a pause, or the ranks have passed different ones",
                    .hint = "pass the same seconds between two saves on all ranks, or 0 to save now"});
}

/// The name of a model, which checkpoints otherwise know by its number: two of one shape could be exchanged.
accelerator::CheckpointPart name_of_model(std::size_t number, const std::string& name) {
  const auto path = text::concat("simulation/models/", number);
  return {.save = [=](checkpoint::Snapshot& snapshot) { snapshot.common.put(path, name); },
          .misfits =
              [=](const checkpoint::Reader& reader) {
                const auto saved = reader.values().contains(path) ? reader.values().get<std::string>(path) : name;
                return saved == name
                           ? std::vector<std::string>()
                           : std::vector{text::concat("its model ", number, " is ", text::quote(saved), ", here ",
                                                      text::quote(name), " (create models in the same order)")};
              },
          .load = [](const checkpoint::Reader&) {}};
}

}  // namespace

std::unique_ptr<Run> Run::begin(int comm, const char* settings_file) {
  runtime::start_mpi();
  auto settings = read_for_all(communicator_of(comm), settings_file);
  if (comm != HORTATOR_WORLD) settings.options.communicator = comm;
  return std::make_unique<Run>(std::move(settings));
}

Run::Run(RunSettings settings)
    : settings_(std::move(settings)), accelerator_(std::make_unique<Accelerator>(settings_.options)) {
  set_seed(settings_.seed, {.device_specific = true});
  // Each model counts its own micro-steps: several models are trained in turns.
  accelerator_->set_gradient_accumulation_steps(1);
}

const mpi::Communicator& Run::comm() const { return accelerator::Training::of(*accelerator_).host(); }

// Local mistakes first: a rank that left here would keep the others waiting.
std::string Run::common_name(const char* name, const char* what) const {
  all_succeed(comm(), [&] {
    if (name == nullptr) throw UsageError({.what = "A name is NULL", .hint = "pass a name of the settings"});
  });
  mpi::same_on_all(comm(), name, what);
  return name;
}

TrainedModel& Run::model(const char* wanted) {
  const auto name = common_name(wanted, "the model to create");
  if (const auto found = models_.find(name); found != models_.end()) return *found->second;
  auto made = std::make_unique<TrainedModel>(*accelerator_, name, settings_.model(name));
  accelerator::Training::of(*accelerator_).prepared.add_part(name_of_model(models_.size(), name));
  return *models_.emplace(name, std::move(made)).first->second;
}

RunBuffer& Run::buffer(const char* wanted) {
  const auto name = common_name(wanted, "the buffer to create");
  if (const auto found = buffers_.find(name); found != buffers_.end()) return *found->second;
  const auto key = core::mix(core::mix(settings_.seed, core::hash(name)), static_cast<std::uint64_t>(comm().rank()));
  auto made = std::make_unique<RunBuffer>(comm(), SampleBuffer(name, SampleBuffer::read(settings_.buffer(name)), key));
  accelerator::Training::of(*accelerator_).prepared.add_part(made->part());
  return *buffers_.emplace(name, std::move(made)).first->second;
}

void Run::keep(const char* wanted, const hortator_array* array, hortator_distribution distribution) {
  const std::string name = wanted == nullptr ? "" : wanted;
  at::Tensor tensor;
  all_succeed(comm(), [&] {
    tensor = bound_tensor(array, accelerator_->device());
    if (!tensor.is_cpu()) {
      throw UsageError({.what = text::concat("hortator_keep got the device array ", text::quote(name)),
                        .why = "checkpoints are written while the device may still compute it",
                        .hint = "keep a copy in the host's memory"});
    }
    if (name.empty() || name.find('/') != std::string::npos || kept_.contains(name)) {
      throw UsageError({.what = text::concat("hortator_keep got the name ", text::quote(name)),
                        .why = "each array needs a name of its own, without slashes",
                        .hint = "choose another name"});
    }
  });
  const KeptArray kept(comm(), name, tensor, distribution);
  accelerator::Training::of(*accelerator_).prepared.add_part(kept.part());
  kept_.emplace(name, true);
}

bool Run::is_between_updates() const {
  for (const auto& [name, model] : models_) {
    if (!model->is_between_updates()) return false;
  }
  return true;
}

bool Run::should_stop() {
  if (is_between_updates()) is_stopping_ = accelerator_->should_stop();
  return is_stopping_;
}

bool Run::save(double every) {
  require_same_pause(comm(), every);
  if (!is_between_updates()) {
    if (every > 0) return false;
    throw UsageError({.what = "hortator_save between the micro-steps of an update",
                      .why = "checkpoints hold no accumulated gradients",
                      .hint = "save after a multiple of gradient_accumulation_steps training steps"});
  }
  if (every == 0) {
    accelerator_->save_state();
    return true;
  }
  const auto pause = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(every));
  return accelerator_->save_state_every(pause).has_value();
}

bool Run::resume() {
  if (!accelerator_->has_checkpoint()) return false;
  accelerator_->load_state();
  return true;
}

int Run::end() {
  accelerator_->end_training();
  return is_stopping_ ? runtime::stopped_exit_code : 0;
}

}  // namespace hortator::simulation
