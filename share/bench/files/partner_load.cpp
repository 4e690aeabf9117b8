#include <ATen/ops/full.h>
#include <unistd.h>

#include <hortator/error.hpp>
#include <memory>

#include "bench/files/disk.hpp"
#include "bench/measurements.hpp"
#include "checkpoint/memory/memory_store.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "runtime/world.hpp"

namespace hortator::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t default_state_bytes = std::int64_t{1} << 28;

/// A folder in the memory of each node.
class NodeFolder {
 public:
  explicit NodeFolder(const runtime::World& world) : is_leader_(world.topology().is_leader()) {
    const auto id = mpi::broadcast(world.comm(), static_cast<std::int64_t>(getpid()));
    path_ = fs::path("/dev/shm") / text::concat("hortator-bench-", id);
    if (is_leader_) fs::create_directory(path_);
    mpi::barrier(world.comm());
  }
  ~NodeFolder() {
    std::error_code ignored;
    if (is_leader_) fs::remove_all(path_, ignored);
  }
  NodeFolder(const NodeFolder&) = delete;
  NodeFolder& operator=(const NodeFolder&) = delete;

  const fs::path& path() const { return path_; }
  void make_empty() const {
    for (const auto& entry : fs::directory_iterator(path_)) fs::remove_all(entry.path());
  }

 private:
  bool is_leader_;
  fs::path path_;
};

/// A checkpoint in memory that the last node has lost: it gets all of it from the others, again and again.
class LostMemory {
 public:
  LostMemory(const runtime::World& world, std::int64_t bytes)
      : comm_(world.comm()),
        loses_(world.topology().is_leader() && world.topology().node == world.topology().nodes - 1),
        folder_(world),
        store_(comm_, node_of(world), {}),
        is_leader_(world.topology().is_leader()),
        leaders_(comm_.split(is_leader_ ? 0 : 1, comm_.rank())) {
    checkpoint::Snapshot snapshot;
    snapshot.common.put("models/0/weight", at::full({bytes / 4}, 1));
    store_.save(snapshot, {.updates = 1});
    if (loses_) folder_.make_empty();
    mpi::barrier(comm_);
    recovery_ = store_.recoveries().at(0);
    for (const auto& transfer : recovery_.transfers) bytes_ += transfer.bytes;
    buffer_ = std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes_));
  }

  std::int64_t bytes() const { return bytes_; }  ///< that nodes send
  void fetch() { store_.fetch(recovery_); }
  /// The same bytes from memory to memory, as MPI sends them.
  void broadcast() {
    if (is_leader_) mpi::broadcast_bytes(leaders_, buffer_.get(), static_cast<std::size_t>(bytes_), 0);
    mpi::barrier(comm_);
  }
  void lose() { store_.drop_fetched(); }
  int nodes() const { return static_cast<int>(recovery_.manifest_to.size()); }

 private:
  checkpoint::MemoryNode node_of(const runtime::World& world) const {
    const auto& topology = world.topology();
    return {
        .folder = folder_.path(), .node = topology.node, .nodes = topology.nodes, .is_leader = topology.is_leader()};
  }

  const mpi::Communicator& comm_;
  bool loses_;
  NodeFolder folder_;
  checkpoint::MemoryStore store_;
  bool is_leader_;
  mpi::Communicator leaders_;
  checkpoint::Recovery recovery_ = {};
  std::int64_t bytes_ = 0;
  std::unique_ptr<std::byte[]> buffer_;
};

Result time_partner_load(const runtime::World& world, std::int64_t bytes, const Plan& plan) {
  LostMemory memory(world, bytes);
  const auto sent = static_cast<double>(memory.bytes());
  const auto timing = time_disk(
      world.comm(),
      {.ours = [&] { memory.fetch(); }, .reference = [&] { memory.broadcast(); }, .line_up = [&] { memory.lose(); }},
      plan.blocks);
  return {.name = "partner-load",
          .params = {{"bytes", memory.bytes()}, {"nodes", memory.nodes()}, {"ranks", world.comm().size()}},
          .reference = "MPI, from memory to memory",
          .timing = timing,
          .algorithm_bytes_per_s = sent / timing.ours.median_s,
          .bus_bytes_per_s = sent / timing.reference.median_s};
}

}  // namespace

std::vector<Result> partner_load(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  const auto& world = accelerator.world();
  if (world.topology().nodes < 2) {
    throw UsageError({.what = "hortator bench partner-load runs on one node",
                      .why = "it measures what a node gets from the memory of another one",
                      .hint = "start it on two nodes: hortator launch --nodes 2 hortator bench partner-load"});
  }
  std::vector<Result> results;
  for (const auto bytes : selection.sizes.empty() ? std::vector{default_state_bytes} : selection.sizes)
    results.push_back(time_partner_load(world, bytes, plan));
  return results;
}

}  // namespace hortator::bench
