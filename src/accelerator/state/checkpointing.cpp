#include <exception>

#include "accelerator/interop/accelerate/folder.hpp"
#include "accelerator/interop/accelerate/state.hpp"
#include "accelerator/state/snapshot.hpp"
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
#include "runtime/ending/failure.hpp"
#include "runtime/ending/late_failure.hpp"

namespace hortator {
namespace {

namespace fs = std::filesystem;
using accelerator::Training;

constexpr int max_nodes_of_one_file = 4;

/// The node of each rank. As a rule as many in a row are on each: then nobody needs to be told. @collective
std::vector<int> nodes_of_ranks(const runtime::World& world) {
  const auto& comm = world.comm();
  const int in_a_row = (comm.size() + world.topology().nodes - 1) / world.topology().nodes;
  const bool as_a_rule = world.topology().node == comm.rank() / in_a_row;
  if (!mpi::all_reduce(comm, as_a_rule, MPI_LAND)) return mpi::all_gather(comm, world.topology().node);
  std::vector<int> nodes;
  for (int rank = 0; rank < comm.size(); ++rank) nodes.push_back(rank / in_a_row);
  return nodes;
}

/// How the ranks are arranged.
std::map<std::string, std::int64_t> mesh_of(const Training& training) {
  const int ranks = training.host().size();
  const int shards = training.zero ? training.zero->ranks_of_group() : ranks;
  if (shards == ranks) return {{"data", ranks}};
  return {{"replicate", ranks / shards}, {"shard", shards}};
}

/// Ranks that wait for this one inside of HDF5 can only be ended.
[[noreturn]] void end_job(const std::string& problem) {
  runtime::report({.problem = problem, .exit_code = checkpoint::failed_disk_exit_code});
  mpi::abort_job(checkpoint::failed_disk_exit_code);
}

/// Into which file each rank writes. @collective the first time
const std::vector<std::size_t>& files_of(Training& training, const runtime::World& world) {
  if (!training.file_of.empty()) return training.file_of;
  const int nodes = world.topology().nodes;
  const int together = training.options.checkpoint.nodes_per_file.value_or(nodes <= max_nodes_of_one_file ? nodes : 1);
  for (const int node : nodes_of_ranks(world)) training.file_of.push_back(static_cast<std::size_t>(node / together));
  return training.file_of;
}

/// What `dir` may mean, the best first; the same on all ranks. Rank 0 looks, so that a slow file system cannot make
/// ranks load different ones. @collective
std::vector<fs::path> choices(const Training& training, const fs::path& dir) {
  const auto& host = training.host();
  std::vector<std::string> found;
  mpi::all_or_none(host, [&] {
    if (host.rank() != 0) return;
    if (!dir.empty()) return found.push_back(checkpoint::find(dir).string());
    for (const auto& folder : training.project.checkpoints()) found.push_back(folder.string());
  });
  std::vector<fs::path> folders;
  const auto lines = mpi::broadcast(host, std::string_view(text::join(found, std::string(1, '\0'))));
  if (lines.empty()) return folders;
  for (const auto& line : text::split(lines, '\0')) folders.emplace_back(line);
  return folders;
}

/// Why it cannot be read, the same on all ranks; nothing when it is loaded. Throws what does not fit. @collective
std::string load_from(Training& training, const fs::path& folder, const LoadOptions& options, bool has_others) {
  const auto& host = training.host();
  std::optional<checkpoint::Reader> reader;
  try {
    reader.emplace(host, folder, options.verify);
    // What a damaged one has and an older one lacks would stay: its state and the older one's would be mixed.
    if (!options.strict && has_others) checkpoint::verify_on_all_ranks(host, folder, reader->manifest(), options.verify);
  } catch (const Error& error) {
    return error.what();
  }
  mpi::Verdict damage;
  mpi::all_or_none(host, [&] {
    try {
      accelerator::call(training.load_hooks, folder);
      accelerator::restore_snapshot(training, *reader, host.rank(), host.size(), options.strict);
    } catch (const formats::FileError& error) {
      damage = mpi::Verdict::of(error);
    }
  });
  try {
    mpi::agree(host, damage);
  } catch (const Error& error) {
    return error.what();
  }
  // Each rank has read what it owns.
  for (const auto& model : training.models) {
    if (model->flat() != nullptr) model->flat()->publish_all();
  }
  return "";
}

/// Rank 0 looks. @collective
bool is_of_python(const mpi::Communicator& host, const fs::path& folder) {
  bool is_one = false;
  mpi::all_or_none(host, [&] { is_one = host.rank() == 0 && accelerator::AccelerateFolder::is_at(folder); });
  return mpi::broadcast(host, is_one);
}

/// Each rank has all parameters to itself while `work` is done, by all or by none. @collective
template <typename Work>
void with_whole_parameters(Training& training, const Work& work) {
  std::vector<parallel::FlatParameters*> lent;
  const auto take_back = [&](bool keep) {
    for (auto* flat : lent) flat->take_back(keep);
  };
  try {
    for (const auto& model : training.models) {
      if (model->flat() == nullptr) continue;
      model->lend_parameters();
      lent.push_back(model->flat());
    }
    mpi::all_or_none(training.host(), work);
  } catch (...) {
    take_back(false);
    throw;
  }
  take_back(true);
}

/// From a folder of Python's Accelerate. Nothing else is tried where it does not fit: it was named. @collective
void load_from_accelerate(Training& training, const fs::path& folder, const LoadOptions& options) {
  const auto& host = training.host();
  std::vector<std::string> left;
  with_whole_parameters(training, [&] {
    accelerator::call(training.load_hooks, folder);
    left = accelerator::restore_from_accelerate(training, folder, host.rank(), host.size(), options.strict);
  });
  if (host.rank() != 0) return;
  for (const auto& one : left) log::warn("not taken over from ", folder.string(), ": ", one);
}

}  // namespace

fs::path Accelerator::save_state(const fs::path& dir, const SaveStateOptions& options) {
  const CallSite site(__builtin_return_address(0));
  training_->session->refuse_in_recording("save_state() was called");
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  const auto begin = accelerator::SavePace::Clock::now();
  const auto& host = training_->host();
  auto& project = training_->project;
  const bool by_default = dir.empty();
  training_->tell("saving a checkpoint");
  training_->settle_seed();
  std::int64_t number = 0;
  mpi::all_or_none(host, [&] {
    // A resumed run goes on behind the last numbers: they must be there when the checkpoint is.
    training_->trackers.flush();
    if (by_default && is_main_process()) number = project.first_free_iteration();
  });
  if (by_default) project.set_iteration(mpi::broadcast(host, number));
  const auto target = by_default ? project.next_checkpoint() : dir;
  mpi::all_or_none(host, [&] { accelerator::call(training_->save_hooks, target); });
  // Each rank writes a part of every tensor: what forward has changed on its own must be one rank's again.
  for (const auto& model : training_->models) model->share_buffers();
  checkpoint::Snapshot snapshot;
  mpi::all_or_none(
      host, [&] { snapshot = accelerator::take_snapshot(*training_, project.iteration() + (by_default ? 1 : 0)); });
  const checkpoint::SaveOptions how = {.writer = training_->options.checkpoint.writer,
                                       .file_of = files_of(*training_, world()),
                                       .step = project.iteration(),
                                       .updates = training_->updates(),
                                       .mesh = mesh_of(*training_),
                                       .metadata = options.metadata,
                                       .end_job = end_job};
  auto folder = training_->options.checkpoint.asynchronous
                    ? training_->background_save.start(host, target, snapshot, how)
                    : checkpoint::save(host, target, snapshot, how);
  if (by_default) project.saved_one();
  if (is_main_process()) project.prune();
  auto& pace = training_->stopping.pace();
  pace.saved(accelerator::SavePace::Clock::now() - begin);
  if (!training_->options.checkpoint.asynchronous) pace.was_there();
  return folder;
}

void Accelerator::wait_for_checkpoint() {
  const CallSite site(__builtin_return_address(0));
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  training_->background_save.wait(training_->host());
  if (is_main_process()) training_->project.prune();
}

bool Accelerator::has_checkpoint() const {
  const CallSite site(__builtin_return_address(0));
  bool found = false;
  mpi::all_or_none(training_->host(), [&] { found = is_main_process() && training_->project.has_checkpoint(); });
  return mpi::broadcast(training_->host(), found);
}

void Accelerator::load_state(const fs::path& dir, const LoadOptions& options) {
  const CallSite site(__builtin_return_address(0));
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  training_->background_save.wait(training_->host());
  if (is_of_python(training_->host(), dir)) {
    load_from_accelerate(*training_, dir, options);
    return log::info("loaded ", dir.string());
  }
  const auto folders = choices(*training_, dir);
  std::vector<std::string> problems;
  for (const auto& folder : folders) {
    auto problem = load_from(*training_, folder, options, folders.size() > 1);
    if (problem.empty()) return log::info("loaded ", folder.string());
    if (dir.empty() && is_main_process()) log::warn("a checkpoint is skipped: ", problem);
    problems.push_back(std::move(problem));
  }
  if (problems.empty()) {
    throw UsageError({.what = text::concat("there is no checkpoint in ", training_->project.dir().string()),
                      .why = "load_state() without a folder loads the newest one of the project",
                      .hint = "ask has_checkpoint() first, or name the folder"});
  }
  throw Error({.what = text::concat("no checkpoint could be loaded: ", text::join(problems, "; ")),
               .why = "what was read before may stand in the models and optimizers",
               .hint = "load an older one, or build them anew"});
}

// Ranks that end together wait for what they still save; a rank that leaves by an exception cannot count on the others.
// A run whose last checkpoint is not there has not done what it was started for.
Accelerator::~Accelerator() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    wait_for_checkpoint();
  } catch (const std::exception& error) {
    if (is_main_process()) log::warn("at the end of the last save: ", error.what());
    runtime::note_late_failure(std::current_exception());
  }
}

}  // namespace hortator
