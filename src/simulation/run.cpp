#include "simulation/run.hpp"

#include <ATen/Parallel.h>

#include <array>
#include <chrono>
#include <cmath>
#include <hortator/training/random.hpp>
#include <span>

#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/training.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"
#include "core/environment/environment.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "mpi/communicator.hpp"
#include "runtime/ending/stop_signal.hpp"
#include "runtime/environment/cpu_warnings.hpp"
#include "runtime/identity/mpi_use.hpp"
#include "runtime/identity/outcome.hpp"
#include "runtime/world.hpp"
#include "simulation/bound_array.hpp"
#include "simulation/calls/local_outcome.hpp"
#include "simulation/communicator_of.hpp"
#include "simulation/state/kept_array.hpp"

namespace hortator::simulation {
namespace {

/// The settings as rank 0 reads them, and the run folder that its environment asks for. @collective
RunSettings read_for_all(const mpi::Communicator& comm, const char* file) {
  std::string name;
  std::string content;
  std::string asked_folder;
  mpi::all_or_none(comm, [&] {
    if (comm.rank() != 0) return;
    if (file == nullptr) throw UsageError({.what = "hortator_begin got no settings file", .hint = "pass its name"});
    name = file;
    content = read_settings_file(name);
    asked_folder = core::process_variables()("HORTATOR_RUN_DIR").value_or("");
  });
  content = mpi::broadcast(comm, std::string_view(content));
  name = mpi::broadcast(comm, std::string_view(name));
  asked_folder = mpi::broadcast(comm, std::string_view(asked_folder));
  RunSettings settings;
  mpi::all_or_none(comm, [&] { settings = read_run_settings(parse_settings(content, name), name, asked_folder); });
  return settings;
}

/// Throws on all ranks unless all have the same pause, from 0. @collective
void require_same_pause(const mpi::Communicator& comm, double every) {
  const bool is_valid = every >= 0 && !std::isinf(every);
  std::array<double, 3> least = {is_valid ? 1.0 : 0.0, is_valid ? every : 0.0, is_valid ? -every : 0.0};
  mpi::all_reduce(comm, std::span<double>(least), mpi::Op::min);
  if (least[0] > 0 && least[1] == -least[2]) return;
  throw UsageError({.what = text::concat("hortator_save got ", every, " seconds on this rank"),
                    .why = "the number of a rank is not a pause, or the ranks have passed different ones",
                    .hint = "pass the same seconds between two saves on all ranks, or 0 to save now"});
}

/// The name of a model, which checkpoints otherwise know by its number: two of one shape could be exchanged. A model
/// that is not finite is not saved.
accelerator::CheckpointPart part_of_model(std::size_t number, const TrainedModel& model) {
  const auto path = text::concat("simulation/models/", number);
  const auto name = model.name();
  return {.save =
              [path, name, &model](checkpoint::Snapshot& snapshot) {
                model.require_finite_parameters();
                snapshot.common.put(path, name);
              },
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
  const runtime::StopSignals until_it_has_begun;
  runtime::start_mpi();
  const auto all = communicator_of(comm);
  auto settings = read_for_all(all, settings_file);
  auto folder = std::make_unique<RunFolderClaim>(all, settings.options.project.dir, settings.file);
  if (comm != HORTATOR_WORLD) settings.options.communicator = comm;
  return std::make_unique<Run>(std::move(settings), std::move(folder));
}

Run::Run(RunSettings settings, std::unique_ptr<RunFolderClaim> folder)
    : settings_(std::move(settings)),
      folder_(std::move(folder)),
      log_row_([this](const LogRow::Numbers& numbers, std::optional<std::int64_t> step) {
        accelerator_->log(numbers, step);
      }),
      accelerator_(std::make_unique<Accelerator>(settings_.options)) {
  set_seed(settings_.seed, {.device_specific = true});
  // Each model counts its own micro-steps: several models are trained in turns.
  accelerator_->set_gradient_accumulation_steps(1);
  threads_ = settings_.model_threads.value_or(accelerator_->world().threads().threads);
  if (settings_.model_threads) {
    at::set_num_threads(threads_);  // also of MKL, within LibTorch
    const auto& world = accelerator_->world();
    runtime::warn_of_cpus(world.comm(), world.host(), {.threads = threads_, .own = world.cpus()});
  }
  // LibTorch sets OpenMP's number at its first use in a thread: now, and not in the middle of a later call.
  at::get_num_threads();
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
  const TrainedModel::Policy policy{
      .number = static_cast<std::int64_t>(models_.size()), .on_nonfinite = settings_.on_nonfinite, .threads = threads_};
  auto made = std::make_unique<TrainedModel>(*accelerator_, name, settings_.model(name), policy);
  accelerator::Training::of(*accelerator_).prepared.add_part(part_of_model(models_.size(), *made));
  return *models_.emplace(name, std::move(made)).first->second;
}

RunBuffer& Run::buffer(const char* wanted) {
  const auto name = common_name(wanted, "the buffer to create");
  if (const auto found = buffers_.find(name); found != buffers_.end()) return *found->second;
  const auto key = core::mix(core::mix(settings_.seed, core::hash(name)), static_cast<std::uint64_t>(comm().rank()));
  auto made = std::make_unique<RunBuffer>(comm(), SampleBuffer(name, SampleBuffer::read(settings_.buffer(name)), key));
  accelerator::Training::of(*accelerator_)
      .prepared.add_part(partial_resume_.optional(text::concat("the buffer ", name), made->part()));
  return *buffers_.emplace(name, std::move(made)).first->second;
}

void Run::keep(const char* wanted, const hortator_array* array, hortator_distribution distribution) {
  const std::string name = wanted == nullptr ? "" : wanted;
  at::Tensor tensor;
  all_succeed(comm(), [&] {
    if (was_resumed_) {
      throw UsageError({.what = text::concat("hortator_keep(", text::quote(name), ") was called after hortator_resume"),
                        .why = "the array would not be restored when the run continues",
                        .hint = "keep all arrays first, then resume"});
    }
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
  accelerator::Training::of(*accelerator_)
      .prepared.add_part(partial_resume_.optional(text::concat("the kept array ", name), kept.part()));
  kept_.emplace(name, true);
}

bool Run::is_between_updates() const {
  for (const auto& [name, model] : models_) {
    if (!model->is_between_updates()) return false;
  }
  return true;
}

bool Run::should_stop() {
  flush_log();
  if (is_between_updates()) is_stopping_ = accelerator_->should_stop();
  return is_stopping_;
}

bool Run::save(double every) {
  require_same_pause(comm(), every);
  flush_log();
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

Run::Resumed Run::resume(bool partly) {
  mpi::same_on_all(comm(), partly ? "hortator_resume_partly" : "hortator_resume", "the function that resumes");
  was_resumed_ = true;
  if (!accelerator_->has_checkpoint()) return {};
  if (!partly && !settings_.resumes_partly) {
    accelerator_->load_state();
    return {.has_checkpoint = true};
  }
  const auto left_out = partial_resume_.run([this] { accelerator_->load_state(); });
  for (const auto& name : left_out) {
    if (comm().rank() == 0) log::warn("the checkpoint does not have ", name, " in this shape: it keeps what it holds");
  }
  return {.has_checkpoint = true, .left_out = static_cast<std::int64_t>(left_out.size())};
}

// In the middle of collective calls: an error of one rank must not keep it from the others.
void Run::flush_log() {
  try {
    log_row_.flush();
  } catch (const std::exception& error) {
    log::warn("numbers of the log were not recorded: ", error.what());
  }
}

void Run::log(std::optional<std::int64_t> step, const std::string& name, double number) {
  log_row_.add(step, name, number);
}

int Run::end() {
  flush_log();
  accelerator_->end_training();
  return is_stopping_ ? runtime::stopped_exit_code : 0;
}

}  // namespace hortator::simulation
