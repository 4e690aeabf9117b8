#include "accelerator/training/node_checkpoints.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <system_error>
#include <utility>

#include "core/environment/environment.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "data/files/staged_file.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/file/replacement.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::accelerator {
namespace {

namespace fs = std::filesystem;

/// A folder for each project of a program, in the folder that the keeper has made. Rank 0 names it: others may run in
/// another working folder. @collective
fs::path folder_of(const mpi::Communicator& comm, const fs::path& kept, const fs::path& project) {
  std::uint64_t name = 0;
  mpi::all_or_none(comm, [&] { name = core::hash(fs::absolute(project).lexically_normal().string()); });
  return kept / text::concat("run-", mpi::broadcast(comm, name));
}

bool is_folder(const std::optional<std::string>& path) {
  std::error_code unreadable;
  return path && fs::is_directory(*path, unreadable);
}

template <typename Options>
NodeCheckpoints::Settings settings_of(const Options& options, checkpoint::NodeMedium medium) {
  checkpoint::MemoryLimits limits{.partners = options.partner, .medium = medium};
  if (options.max_bytes) limits.max_bytes = static_cast<std::uint64_t>(*options.max_bytes);
  return {.interval = SaveInterval::of(options), .limits = limits};
}

/// Null without the folder of a keeper on each node. @collective
std::unique_ptr<NodeCheckpoints> open_in_memory(const MemoryCheckpointOptions& options, const runtime::World& world,
                                                const fs::path& project) {
  const auto kept = core::variable("HORTATOR_KEPT_MEMORY");
  if (!mpi::all_reduce(world.comm(), is_folder(kept), mpi::Op::logical_and)) {
    if (world.comm().rank() == 0) {
      log::warn("No checkpoints are kept in memory: ",
                kept ? "the keeper of a node has ended, or runs on other nodes"
                     : "only `hortator launch --max-restarts N` keeps memory for them");
    }
    return nullptr;
  }
  const auto folder = folder_of(world.comm(), *kept, project);
  mpi::all_or_none(world.comm(), [&] {
    std::error_code error;  // MemoryStore throws where there is no folder
    if (world.topology().is_leader()) fs::create_directory(folder, error);
  });
  return std::make_unique<NodeCheckpoints>(settings_of(options, checkpoint::NodeMedium::memory), world, folder);
}

/// Names the run in its project's folder: who removes that folder and begins again must not find checkpoints of the run
/// before on the nodes. @collective
std::string id_of_run(const mpi::Communicator& comm, const fs::path& project) {
  constexpr std::uint64_t max_bytes = 100;
  std::string id;
  mpi::all_or_none(comm, [&] {
    if (comm.rank() != 0) return;
    const auto file = project / "local_checkpoints.id";
    if (fs::exists(file)) {
      id = formats::read_text(file, max_bytes);
    } else {
      id = formats::replacement_id();
      formats::RawFile out = formats::RawFile::create(file);
      out.write_at(0, id.data(), id.size());
      out.close();
    }
    if (formats::is_replacement_id(id)) return;
    throw UsageError({.what = text::concat(file.string(), " is damaged"),
                      .why = "it names the checkpoints of this run on the nodes' disks",
                      .hint = "remove it: the run then resumes from the project's checkpoints"});
  });
  return mpi::broadcast(comm, std::string_view(id));
}

void make_own_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    formats::throw_system_error(text::concat("create the folder ", folder), errno);
  struct stat facts {};
  if (lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid()) return;
  throw UsageError({.what = text::concat("There is something at ", folder.string(), " that is not this user's folder"),
                    .why = "checkpoints are kept there, and loaded from there",
                    .hint = "name another folder with --local-folder"});
}

std::string this_host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// A folder for each run, and in it one for each node: a folder that nodes share serves as well. @collective
std::unique_ptr<NodeCheckpoints> open_on_disks(const LocalCheckpointOptions& options, const runtime::World& world,
                                               const fs::path& project) {
  const auto parent = options.folder.empty() ? data::node_folder(core::process_variables()) : options.folder;
  const auto run =
      fs::absolute(parent) / text::concat("hortator-", geteuid(), "-run-", id_of_run(world.comm(), project));
  const auto folder = run / this_host();
  mpi::all_or_none(world.comm(), [&] {
    if (!world.topology().is_leader()) return;
    make_own_folder(run);
    make_own_folder(folder);
  });
  return std::make_unique<NodeCheckpoints>(settings_of(options, checkpoint::NodeMedium::disk), world, folder);
}

checkpoint::MemoryNode node_in(const fs::path& folder, const runtime::Topology& topology) {
  return {.folder = folder, .node = topology.node, .nodes = topology.nodes, .is_leader = topology.is_leader()};
}

}  // namespace

NodeLevels open_levels(const AcceleratorOptions& options, const runtime::World& world, const fs::path& project) {
  NodeLevels levels;
  const auto add = [&](std::unique_ptr<NodeCheckpoints> level) {
    if (level) levels.push_back(std::move(level));
  };
  if (SaveInterval::of(options.memory_checkpoint).is_set())
    add(open_in_memory(options.memory_checkpoint, world, project));
  if (SaveInterval::of(options.local_checkpoint).is_set()) add(open_on_disks(options.local_checkpoint, world, project));
  return levels;
}

std::vector<RecoveryOfLevel> newer_than(const NodeLevels& levels, std::optional<std::int64_t> updates) {
  std::vector<RecoveryOfLevel> all;
  for (const auto& level : levels) {
    for (auto& recovery : level->newer_than(updates)) all.push_back({level.get(), std::move(recovery)});
  }
  std::ranges::stable_sort(all, std::greater<>(), [](const RecoveryOfLevel& one) { return one.recovery.updates; });
  return all;
}

NodeCheckpoints::NodeCheckpoints(Settings settings, const runtime::World& world, const fs::path& folder)
    : comm_(world.comm()),
      folder_(folder),
      is_leader_(world.topology().is_leader()),
      medium_(settings.limits.medium),
      store_(world.comm(), node_in(folder, world.topology()), settings.limits),
      interval_(std::move(settings.interval)) {}

void NodeCheckpoints::warn(const std::string& text) const {
  if (comm_.rank() == 0) log::warn(text);
}

void NodeCheckpoints::turn_off(const char* reason) {
  if (!is_on_) return;
  is_on_ = false;
  warn(text::concat("No checkpoints are kept ",
                    medium_ == checkpoint::NodeMedium::memory ? "in memory" : "on the nodes' disks",
                    " from now on: ", reason, "; after a failure the run resumes from others"));
}

void NodeCheckpoints::take(const checkpoint::Snapshot& snapshot, const checkpoint::SaveOptions& options) {
  try {
    store_.save(snapshot, options);
    has_taken_ = true;
  } catch (const Error& error) {  // the same on all ranks
    turn_off(error.what());
  }
  interval_.restart(options.updates);
}

std::vector<checkpoint::Recovery> NodeCheckpoints::newer_than(std::optional<std::int64_t> updates_on_disk) const {
  auto found = store_.recoveries();
  std::erase_if(found, [&](const auto& one) { return updates_on_disk && one.updates < *updates_on_disk; });
  return found;
}

fs::path NodeCheckpoints::fetch(const checkpoint::Recovery& recovery) {
  try {
    return store_.fetch(recovery);
  } catch (const Error& error) {
    store_.drop_fetched();
    throw FetchError({.what = text::concat("The checkpoint of update ", recovery.updates, " in ", place(),
                                           " cannot be put together: ", error.what())});
  }
}

void NodeCheckpoints::note_loaded(std::int64_t updates) {
  interval_.restart(updates);
  store_.drop_fetched();
}

void NodeCheckpoints::end() {
  if (!has_taken_ || !is_leader_ || medium_ == checkpoint::NodeMedium::memory) return;
  std::error_code error;
  fs::remove_all(folder_, error);
  if (error) log::warn(folder_.string(), " could not be removed: ", error.message());
  fs::remove(folder_.parent_path(), error);  // if it is empty
}

}  // namespace hortator::accelerator
