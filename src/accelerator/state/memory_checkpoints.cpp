#include "accelerator/state/memory_checkpoints.hpp"

#include <algorithm>
#include <system_error>

#include "core/environment/environment.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
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

checkpoint::MemoryLimits limits_of(const MemoryCheckpointOptions& options) {
  checkpoint::MemoryLimits limits{.partners = options.partner};
  if (options.max_bytes) limits.max_bytes = static_cast<std::uint64_t>(*options.max_bytes);
  return limits;
}

}  // namespace

std::unique_ptr<MemoryCheckpoints> MemoryCheckpoints::open(const MemoryCheckpointOptions& options,
                                                           const runtime::World& world, const fs::path& project) {
  if (options.every_steps == 0) return nullptr;
  const auto kept = core::variable("HORTATOR_KEPT_MEMORY");
  const bool is_main = world.comm().rank() == 0;
  if (!mpi::all_reduce(world.comm(), is_folder(kept), MPI_LAND)) {
    if (is_main) {
      log::warn("No checkpoints are kept in memory: ",
                kept ? "the keeper of a node has ended, or runs on other nodes"
                     : "only `hortator launch --max-restarts N` keeps memory for them");
    }
    return nullptr;
  }
  const auto& topology = world.topology();
  checkpoint::MemoryNode node{.folder = folder_of(world.comm(), *kept, project),
                              .node = topology.node,
                              .nodes = topology.nodes,
                              .is_leader = topology.is_leader()};
  mpi::all_or_none(world.comm(), [&] {
    std::error_code error;  // MemoryStore throws where there is no folder
    if (node.is_leader) fs::create_directory(node.folder, error);
  });
  return std::unique_ptr<MemoryCheckpoints>(new MemoryCheckpoints(options, world, std::move(node)));
}

MemoryCheckpoints::MemoryCheckpoints(const MemoryCheckpointOptions& options, const runtime::World& world,
                                     checkpoint::MemoryNode node)
    : comm_(world.comm()), store_(world.comm(), std::move(node), limits_of(options)), every_(options.every_steps) {}

void MemoryCheckpoints::warn(const std::string& text) const {
  if (comm_.rank() == 0) log::warn(text);
}

void MemoryCheckpoints::turn_off(const char* reason) {
  if (!is_on_) return;
  is_on_ = false;
  warn(text::concat("No checkpoints are kept in memory from now on: ", reason,
                    "; after a failure the run resumes from the disk"));
}

void MemoryCheckpoints::take(const checkpoint::Snapshot& snapshot, const checkpoint::SaveOptions& options) {
  last_ = options.updates;
  try {
    store_.save(snapshot, options);
  } catch (const Error& error) {  // the same on all ranks
    turn_off(error.what());
  }
}

std::vector<checkpoint::Recovery> MemoryCheckpoints::newer_than(std::optional<std::int64_t> updates_on_disk) const {
  auto found = store_.recoveries();
  std::erase_if(found, [&](const auto& one) { return updates_on_disk && one.updates < *updates_on_disk; });
  return found;
}

fs::path MemoryCheckpoints::fetch(const checkpoint::Recovery& recovery) {
  try {
    return store_.fetch(recovery);
  } catch (const Error& error) {
    store_.drop_fetched();
    throw FetchError({.what = text::concat("The checkpoint of update ", recovery.updates,
                                           " in memory cannot be put together: ", error.what())});
  }
}

void MemoryCheckpoints::note_loaded(std::int64_t updates) {
  last_ = updates;
  store_.drop_fetched();
}

}  // namespace hortator::accelerator
