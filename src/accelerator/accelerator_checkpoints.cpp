#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <set>
#include <span>

#include "accelerator/channels/channels.hpp"
#include "accelerator/interop/accelerate/folder.hpp"
#include "accelerator/interop/accelerate_state.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/protection/host_reports.hpp"
#include "accelerator/scopes/takeover.hpp"
#include "accelerator/state/begun_save.hpp"
#include "accelerator/state/node_saving.hpp"
#include "accelerator/state/saved_mesh.hpp"
#include "accelerator/state/snapshot.hpp"
#include "accelerator/training/complete_checkpoints.hpp"
#include "accelerator/training/run_output.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "checkpoint/format.hpp"
#include "checkpoint/read/verify.hpp"
#include "checkpoint/write/mpio_writer.hpp"
#include "core/activity/activity.hpp"
#include "core/call_site.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "mpi/rehearsed_world.hpp"
#include "observe/status/host_report.hpp"
#include "runtime/ending/failure.hpp"
#include "runtime/ending/late_failure.hpp"

namespace hortator {
namespace {

namespace fs = std::filesystem;
using accelerator::Training;

constexpr int max_nodes_of_one_file = 4;

/// Ends the job: other ranks wait for this one inside HDF5 and cannot be reached otherwise.
[[noreturn]] void end_job(const std::string& problem) {
  runtime::report({.problem = problem, .exit_code = checkpoint::failed_disk_exit_code});
  mpi::abort_job(checkpoint::failed_disk_exit_code);
}

/// The node of each rank. Usually ranks fill one node after the other; then a reduction of one number shows it, and the
/// message does not grow with the ranks. @collective
std::vector<int> nodes_of_ranks(const runtime::World& world) {
  const auto& comm = world.comm();
  const int per_node = (comm.size() + world.topology().nodes - 1) / world.topology().nodes;
  const bool in_order = world.topology().node == comm.rank() / per_node;
  if (!mpi::all_reduce(comm, in_order, mpi::Op::logical_and)) return mpi::all_gather(comm, world.topology().node);
  std::vector<int> nodes;
  for (int rank = 0; rank < comm.size(); ++rank) nodes.push_back(rank / per_node);
  return nodes;
}

/// For each rank, the number of the file that it writes into. @collective the first time
const std::vector<std::size_t>& files_of(Training& training, const runtime::World& world) {
  if (!training.output.file_of_ranks().empty()) return training.output.file_of_ranks();
  const int nodes = world.topology().nodes;
  const int together =
      training.options().checkpoint.nodes_per_file.value_or(nodes <= max_nodes_of_one_file ? nodes : 1);
  for (const int node : nodes_of_ranks(world))
    training.output.file_of_ranks().push_back(static_cast<std::size_t>(node / together));
  return training.output.file_of_ranks();
}

fs::path normal(const fs::path& path) { return fs::absolute(path / "").lexically_normal().parent_path(); }

/// Where the folders that `dir` may mean lie on this node.
fs::path place_of(const Training& training, const fs::path& dir) {
  return dir.empty() ? normal(training.output.project().dir()) : normal(dir).parent_path();
}

/// The folders that `dir` may mean, best first; the same on all ranks, each with this node's path. Only rank 0 looks,
/// so that a slow file system cannot make ranks load different ones. @collective
std::vector<fs::path> candidate_folders(const Training& training, const fs::path& dir) {
  const auto& host = training.host();
  std::vector<std::string> found;
  fs::path place;
  mpi::all_or_none(host, [&] {
    if (training.output.own_node()) place = place_of(training, dir);
    if (host.rank() != 0) return;
    const auto add = [&](const fs::path& folder) {
      found.push_back(place.empty() ? folder.string() : normal(folder).lexically_relative(place).string());
    };
    if (!dir.empty()) return add(checkpoint::find(dir));
    for (const auto& folder : training.output.project().checkpoints()) add(folder);
  });
  std::vector<fs::path> folders;
  const auto lines = mpi::broadcast(host, std::string_view(text::join(found, std::string(1, '\0'))));
  if (lines.empty()) return folders;
  for (const auto& line : text::split(lines, '\0')) folders.push_back(place / line);
  return folders;
}

enum class LoadOutcome { loaded, damaged };

struct LoadResult {
  LoadOutcome outcome = LoadOutcome::loaded;
  std::string reason = {};  ///< of the damage
};

/// Agrees on how the ranks have read their parts. If an error other than damage has come up on some rank, all throw it.
/// Costs one reduction of 8 bytes when all is well. @collective
LoadResult agree_on_load(const mpi::Communicator& host, const mpi::LocalOutcome& damage,
                         const mpi::LocalOutcome& error) {
  constexpr int nobody = std::numeric_limits<int>::max();
  std::array<int, 2> first = {damage.failed ? host.rank() : nobody, error.failed ? host.rank() : nobody};
  mpi::all_reduce(host, std::span<int>(first), mpi::Op::min);
  if (first[1] != nobody) mpi::agree(host, error);  // throws
  if (first[0] == nobody) return {};
  return {.outcome = LoadOutcome::damaged, .reason = mpi::broadcast(host, std::string_view(damage.problem), first[0])};
}

/// Loads one checkpoint. The result is the same on all ranks; throws on all of them if the checkpoint does not fit what
/// is prepared. With `has_others`, a lenient load reads everything first: if it turned out to be damaged halfway, its
/// state would be mixed with that of an older checkpoint that holds less. @collective
LoadResult load_from(Training& training, const fs::path& folder, const LoadOptions& options, bool has_others) {
  const auto& host = training.host();
  std::optional<checkpoint::Reader> reader;
  try {
    const auto here = training.output.own_node() ? checkpoint::find_copy(host, folder) : folder;
    reader.emplace(host, here, options.verify);
    if (!options.strict && has_others) checkpoint::verify_on_all_ranks(host, here, reader->manifest(), options.verify);
  } catch (const Error& error) {  // all ranks throw the same
    return {.outcome = LoadOutcome::damaged, .reason = error.what()};
  }
  training.forget_protection();
  const auto left_out = accelerator::call(training.prepared.load_hooks(),
                                          {.checkpoint = folder, .own = folder / checkpoint::hooks_folder},
                                          training.prepared.models(), training.host());
  mpi::LocalOutcome damage;
  mpi::LocalOutcome other_error;
  try {
    accelerator::restore_snapshot(training, *reader, host.rank(), host.size(), options.strict, left_out);
  } catch (const formats::FileError& error) {
    damage = mpi::LocalOutcome::of(error);
  } catch (const std::exception& error) {
    other_error = mpi::LocalOutcome::of(error);
  }
  auto result = agree_on_load(host, damage, other_error);
  if (result.outcome == LoadOutcome::damaged) return result;
  training.drop_gradients();
  // Each rank has read the slices that it owns.
  for (std::size_t i = 0; i < training.prepared.models().size(); ++i) {
    auto& model = *training.prepared.models()[i];
    if (model.sharded() != nullptr) model.sharded()->publish_all();
    if (options.strict && !left_out.contains(i)) model.note_equal();
  }
  return result;
}

/// @collective
LoadResult load_once(Training& training, accelerator::NodeCheckpoints& level, const checkpoint::Recovery& recovery,
                     const LoadOptions& options) {
  try {
    return load_from(training, level.fetch(recovery), options, /*has_others=*/true);
  } catch (const accelerator::FetchError& error) {  // the same on all ranks
    return {.outcome = LoadOutcome::damaged, .reason = error.what()};
  }
}

/// Loads a checkpoint of the nodes; if it is damaged, once more with copies of the damaged files. @collective
LoadResult load_from_nodes(Training& training, accelerator::NodeCheckpoints& level,
                           const checkpoint::Recovery& recovery, const LoadOptions& options) {
  auto result = load_once(training, level, recovery, options);
  if (result.outcome == LoadOutcome::loaded) return result;
  const auto repair = level.repair(recovery);
  if (training.host().rank() == 0) {
    for (const auto& host : repair.damaged_hosts) {
      accelerator::report_host(observe::damaged_host, host,
                               text::concat("a checkpoint in the ", level.place(), " of ", host, " was damaged"));
    }
  }
  return repair.recovery ? load_once(training, level, *repair.recovery, options) : result;
}

using Tried = std::set<std::pair<const accelerator::NodeCheckpoints*, std::int64_t>>;

/// Loads the newest checkpoint of the nodes, unless the project has a newer one that is not known to be damaged; of two
/// that are equally new, the one in memory. Returns false if there is none that can be loaded, and adds the reasons to
/// `problems`. Tries each of them once: `tried` are their numbers. @collective
bool load_from_nodes(Training& training, const LoadOptions& options, std::vector<std::string>& problems, Tried& tried) {
  const auto& levels = training.output.node_levels();
  if (levels.empty()) return false;
  for (const auto& [level, recovery] : accelerator::newer_than(levels, accelerator::updates_on_disk(training))) {
    if (!tried.insert({level, recovery.number}).second) continue;
    auto result = load_from_nodes(training, *level, recovery, options);
    if (result.outcome == LoadOutcome::loaded) {
      training.output.note_resumed();
      training.output.save_interval().restart(recovery.updates);
      for (const auto& one : levels) one->note_loaded(recovery.updates);
      log::info("loaded the checkpoint of update ", recovery.updates, " from the ", level->place(), " of the nodes");
      return true;
    }
    if (training.host().rank() == 0) log::warn("a checkpoint in ", level->place(), " was skipped: ", result.reason);
    problems.push_back(std::move(result.reason));
  }
  return false;
}

constexpr std::size_t max_earlier = 3;

/// The checkpoints whose frozen files the next one may link, on rank 0.
std::vector<fs::path> earlier_checkpoints(const Training& training, const fs::path& target) {
  std::vector<fs::path> found;
  if (training.host().rank() != 0 || !training.options().checkpoint.incremental) return found;
  const auto& project = training.output.project();
  auto all = checkpoint::candidates(target);
  for (auto& one : project.checkpoints()) all.push_back(std::move(one));
  for (const auto& one : all) {
    if (found.size() == max_earlier) break;
    if (!project.is_damaged(one) && std::ranges::find(found, one) == found.end()) found.push_back(one);
  }
  return found;
}

/// Whether Hugging Face Accelerate wrote the folder; only rank 0 looks. @collective
bool is_of_python(const mpi::Communicator& host, const fs::path& folder) {
  bool is_one = false;
  mpi::all_or_none(host, [&] { is_one = host.rank() == 0 && accelerator::AccelerateFolder::is_at(folder); });
  return mpi::broadcast(host, is_one);
}

/// Loads from a folder of Hugging Face Accelerate. Throws if it does not fit, since the user named it. @collective
void load_from_accelerate(Training& training, const fs::path& folder, const LoadOptions& options) {
  const auto& host = training.host();
  const auto left_out = accelerator::call(training.prepared.load_hooks(), {.checkpoint = folder, .own = folder},
                                          training.prepared.models(), host);
  if (!left_out.empty()) {
    throw UsageError({.what = "A state hook leaves models out of a folder of Hugging Face Accelerate",
                      .why = "such a folder is loaded as a whole",
                      .hint = "load the weights that you want by load_checkpoint_in_model()"});
  }
  training.forget_protection();
  const auto left = accelerator::restore_from_accelerate(training, folder, options.strict);
  training.drop_gradients();
  for (const auto& model : training.prepared.models()) {
    if (options.strict) model->note_equal();
  }
  if (host.rank() != 0) return;
  for (const auto& one : left) log::warn("not taken over from ", folder.string(), ": ", one);
}

/// Within LocalSGD, directly after an average, ranks still have optimizers' states of their own: rank 0's count, or
/// those of its group, for the run that continues as well, so that one which resumes is equal to it. @collective
void join_local_steps(Training& training) {
  const auto is_apart = [](const auto& model) { return model->is_apart(); };
  if (std::ranges::any_of(training.prepared.models(), is_apart))
    accelerator::take_over_steps(training, training.channels.along(parallel::Axis::replicate).host, 0);
}

/// Hooks write files of their own, into one folder. Throws the same on all ranks.
void refuse_hooks_on_nodes(Training& training) {
  if (!training.output.own_node() || training.prepared.save_hooks().empty()) return;
  throw UsageError({.what = "save_state() with project.save_on_each_node, and with a state hook",
                    .why = "the files of a hook lie on the disk of the first node only",
                    .hint = "leave one of the two out"});
}

void warn_of_lost_gradients(const Training& training) {
  const auto& accumulation = training.control.accumulation();
  const auto taken = accumulation.position().taken % accumulation.steps();
  if (taken == 0 || training.host().rank() != 0) return;
  log::warn("save_state() was called after ", taken, " of ", accumulation.steps(),
            " micro-steps of an update: a checkpoint does not hold their gradients");
}

}  // namespace

fs::path Accelerator::save_state(const fs::path& dir, const SaveStateOptions& options) {
  const CallSite site(__builtin_return_address(0));
  training_->control.session()->refuse_in_recording("save_state() was called");
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  const auto begin = accelerator::SavePace::Clock::now();
  const auto& host = training_->host();
  auto& project = training_->output.project();
  const bool by_default = dir.empty();
  training_->enter_phase("saving a checkpoint");
  training_->settle_seed();
  std::int64_t number = 0;
  mpi::all_or_none(host, [&] {
    for (const auto& model : training_->prepared.models()) model->require_equal("save_state()");
    // A resumed run continues after the last numbers: they must be on disk when the checkpoint is.
    training_->output.trackers().flush();
    if (by_default) training_->output.claim_project(world());
    if (by_default && is_main_process()) number = project.first_free_iteration();
  });
  if (by_default) project.set_iteration(mpi::broadcast(host, number));
  auto target = by_default ? project.next_checkpoint() : dir;
  if (mpi::rehearsed_world()) return target;  // the other ranks' parts do not exist
  warn_of_lost_gradients(*training_);
  join_local_steps(*training_);
  const auto& settings = training_->options().checkpoint;
  if (settings.incremental) training_->output.background_save().wait(host);  // the next save links its files
  refuse_hooks_on_nodes(*training_);
  const accelerator::BegunSave begun(*training_, target);
  const accelerator::ModelSelection selection{.only_trainable = options.only_trainable, .left_out = begun.left_out()};
  // Each rank writes a part of every tensor, so buffers that forward changed on each rank must be equal again.
  for (const auto& model : training_->prepared.models()) model->share_buffers();
  const auto snapshot = accelerator::take_snapshot(*training_, project.iteration() + (by_default ? 1 : 0), selection);
  std::vector<fs::path> earlier;
  mpi::all_or_none(host, [&] { earlier = earlier_checkpoints(*training_, target); });
  const checkpoint::SaveOptions how = {.writer = settings.writer,
                                       .file_of = files_of(*training_, world()),
                                       .step = project.iteration(),
                                       .updates = training_->output.updates(),
                                       .mesh = accelerator::mesh_of(training_->channels.mesh().shape()),
                                       .metadata = options.metadata,
                                       .end_job = end_job,
                                       .replaces_damaged = project.is_damaged(target),
                                       .begun = begun.folder(),
                                       .shares_frozen = settings.incremental,
                                       .earlier = std::move(earlier)};
  const auto& node = training_->output.own_node();
  auto folder = settings.asynchronous ? training_->output.background_save().start(host, target, snapshot, how)
                : node                ? checkpoint::save_on_each_node(host, *node, target, snapshot, how)
                                      : checkpoint::save(host, target, snapshot, how);
  project.forget_damaged(target);
  if (by_default) {
    project.saved_one();
    training_->output.save_interval().restart(training_->output.updates());
  }
  accelerator::announce_completed_saves(*training_);
  if (!settings.asynchronous) accelerator::announce_complete(*training_, folder);
  if (is_main_process() || (node && node->is_leader)) project.prune();
  auto& pace = training_->control.stopping().pace();
  pace.saved(accelerator::SavePace::Clock::now() - begin);
  if (!settings.asynchronous) pace.note_complete();
  return folder;
}

void Accelerator::wait_for_checkpoint() {
  const CallSite site(__builtin_return_address(0));
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  training_->output.background_save().wait(training_->host());
  accelerator::announce_completed_saves(*training_);
  if (is_main_process()) training_->output.project().prune();
}

bool Accelerator::has_checkpoint() const {
  const CallSite site(__builtin_return_address(0));
  bool found = false;
  mpi::all_or_none(training_->host(),
                   [&] { found = is_main_process() && !training_->output.project().checkpoints().empty(); });
  found = mpi::broadcast(training_->host(), found);
  return found || !accelerator::newer_than(training_->output.node_levels(), {}).empty();
}

void Accelerator::load_state(const fs::path& dir, const LoadOptions& options) {
  const CallSite site(__builtin_return_address(0));
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  training_->prepared.require_together("load_state()");
  training_->control.session()->refuse_in_recording("load_state() was called");
  training_->control.refuse_lent_weights("load_state()");
  training_->output.background_save().wait(training_->host());
  if (is_of_python(training_->host(), dir)) {
    load_from_accelerate(*training_, dir, options);
    return log::info("loaded ", dir.string());
  }
  std::vector<std::string> problems;
  Tried tried;
  if (dir.empty() && load_from_nodes(*training_, options, problems, tried)) return;
  const auto folders = candidate_folders(*training_, dir);
  for (const auto& folder : folders) {
    auto result = load_from(*training_, folder, options, folders.size() > 1);
    if (result.outcome == LoadOutcome::loaded) {
      if (dir.empty()) training_->output.note_resumed();
      training_->output.save_interval().restart(training_->output.updates());
      for (const auto& level : training_->output.node_levels()) level->note_loaded(training_->output.updates());
      return log::info("loaded ", folder.string());
    }
    if (dir.empty() && is_main_process()) log::warn("a checkpoint was skipped: ", result.reason);
    training_->output.project().note_damaged(folder);
    problems.push_back(std::move(result.reason));
    if (dir.empty() && load_from_nodes(*training_, options, problems, tried)) return;
  }
  if (problems.empty()) {
    throw UsageError({.what = text::concat("There is no checkpoint in ", training_->output.project().dir().string()),
                      .why = "load_state() without a folder loads the newest one of the project",
                      .hint = "check has_checkpoint() first, or name the folder"});
  }
  throw Error({.what = text::concat("No checkpoint could be loaded: ", text::join(problems, "; ")),
               .why = "models and optimizers may hold parts of the damaged ones",
               .hint =
                   "restore the files or load another checkpoint by name; to begin from scratch, move these folders "
                   "away"});
}

StateHookHandle Accelerator::register_save_state_pre_hook(StateHook hook) {
  return accelerator::add(training_->prepared.save_hooks(), std::move(hook));
}

StateHookHandle Accelerator::register_load_state_pre_hook(StateHook hook) {
  return accelerator::add(training_->prepared.load_hooks(), std::move(hook));
}

// Ranks that end together wait for their last save; a rank that leaves by an exception cannot count on the others. A
// run whose last checkpoint failed counts as failed.
Accelerator::~Accelerator() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    wait_for_checkpoint();
    if (training_->control.stopping().is_leaving()) return;  // the run will be resumed
    for (const auto& level : training_->output.node_levels()) level->end();
  } catch (const std::exception& error) {
    if (is_main_process()) log::warn("the last save has failed: ", error.what());
    runtime::note_late_failure(std::current_exception());
  }
}

}  // namespace hortator
