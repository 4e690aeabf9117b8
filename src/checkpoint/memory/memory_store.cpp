#include "checkpoint/memory/memory_store.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <utility>

#include "checkpoint/format.hpp"
#include "checkpoint/memory/file_transfer.hpp"
#include "checkpoint/write/removal.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"

namespace hortator::checkpoint {
namespace {

namespace fs = std::filesystem;

void put_whole(const fs::path& path, const std::string& bytes) {
  auto file = formats::RawFile::create(path);
  file.write_at(0, bytes.data(), bytes.size());
  file.sync();
  file.close();
}

std::int64_t max_file_bytes(const Manifest& manifest) {
  std::int64_t bytes = 0;
  for (const auto& file : manifest.files) bytes = std::max(bytes, file.bytes);
  return bytes;
}

/// Keeps checkpoints on disks readable after a power failure.
void rename_durably(const fs::path& from, const fs::path& to) {
  formats::rename(from, to);
  formats::sync_folder(to.parent_path());
}

}  // namespace

MemoryStore::MemoryStore(const mpi::Communicator& comm, MemoryNode node, MemoryLimits limits)
    : comm_(comm),
      node_(std::move(node)),
      limits_(limits),
      leaders_(comm.split(node_.is_leader ? 0 : 1, comm.rank())),
      memory_(node_.folder, limits.max_bytes, limits.medium) {
  limits_.partners = std::min(limits_.partners, node_.nodes - 1);
  for (const int its : mpi::all_gather(comm_, node_.node)) file_of_.push_back(static_cast<std::size_t>(its));
  mpi::all_or_none(comm_, [&] {
    if (!fs::is_directory(node_.folder)) {
      throw UsageError({.what = text::concat("There is no folder ", node_.folder.string(), " on this node"),
                        .why = "checkpoints in its memory or on its disk are kept there",
                        .hint = "start the program by `hortator launch --memory-checkpoint 10 --max-restarts N`"});
    }
    if (!std::ranges::is_sorted(file_of_)) {
      throw UsageError({.what = "The ranks do not fill one node after the other",
                        .why = "each node keeps one contiguous part of a checkpoint",
                        .hint = "drop --map-by, or distribute ranks in blocks"});
    }
  });
  next_number_ = mpi::all_reduce(comm_, memory_.last_number(), mpi::Op::max) + 1;
  if (const auto found = recoveries(); !found.empty()) whole_ = found.front().number;
}

void MemoryStore::save(const Snapshot& snapshot, SaveOptions options) {
  options.file_of = file_of_;
  const auto number = next_number_++;
  const formats::Replacement replacement(memory_.path(number), mpi::broadcast(comm_, formats::replacement_id()),
                                         ownership());
  require_complete(comm_, snapshot, options);
  std::optional<FrozenFiles> shared;
  SaveTask task = [&] {
    if (!options.shares_frozen) return plan(comm_, replacement, snapshot, options);
    const FrozenTensors frozen(comm_, snapshot);
    shared = share(frozen, options);
    return shared ? plan(comm_, replacement, frozen.others(), options)
                  : plan(comm_, replacement, snapshot, options, frozen.names());
  }();
  if (shared && comm_.rank() == 0) task.shared = *shared;
  try {
    write(task, number, shared ? frozen_here() : std::vector<std::string>());
  } catch (...) {
    std::error_code ignored;
    if (node_.is_leader) fs::remove_all(replacement.staged(), ignored);
    throw;
  }
}

// Each node links what it holds of the newest checkpoint. After a restart on other nodes, all is written again.
std::optional<FrozenFiles> MemoryStore::share(const FrozenTensors& frozen, SaveOptions options) const {
  if (!whole_) return {};
  if (comm_.rank() == 0) options.earlier = {memory_.path(*whole_)};
  return frozen.share(options, [&](const FrozenFiles& found) {
    if (!node_.is_leader) return;
    const auto here = frozen_here();
    const auto exists = [&](const std::string& name) { return fs::exists(memory_.path(*whole_) / name); };
    if (std::cmp_equal(found.files.size(), node_.nodes) && std::ranges::all_of(here, exists)) return;
    throw Error({.what = "the last checkpoint is of other nodes"});
  });
}

// Until the end, the newest checkpoint before stays as it is.
void MemoryStore::write(const SaveTask& task, std::int64_t number, const std::vector<std::string>& linked) {
  const auto staged = task.replacement.staged();
  mpi::all_or_none(comm_, [&] {
    if (!node_.is_leader) return;
    memory_.make(staged, files_here(task.layout), bytes_here(task.layout), whole_, linked);
  });
  RankReport mine;
  mpi::all_or_none(comm_, [&] { mine = write_part(task); });
  const auto reports = gather(comm_, mine);
  std::string json;
  mpi::all_or_none(comm_, [&] {
    if (comm_.rank() == 0) json = to_json(manifest_of(task, reports));
  });
  json = mpi::broadcast(comm_, std::string_view(json));
  copy_to_partners(task, json);
  mpi::all_or_none(comm_, [&] {
    if (node_.is_leader) rename_durably(staged, memory_.path(number));
  });
  whole_ = number;
}

void MemoryStore::copy_to_partners(const SaveTask& task, const std::string& json) {
  const auto staged = task.replacement.staged();
  Manifest manifest;
  mpi::all_or_none(comm_, [&] {
    if (!node_.is_leader) return;
    manifest = parse_manifest(json);
    put_whole(staged / manifest_file, json);
  });
  SteadyWork work;
  if (node_.is_leader) {
    const auto written = [&](std::size_t file) {
      return FileOfRank{.path = staged / manifest.files[file].name, .bytes = manifest.files[file].bytes};
    };
    for (std::size_t first = 0; first < task.layout.files.size(); first += task.layout.state_files) {
      for (int distance = 1; distance <= limits_.partners; ++distance) {
        pass_on(leaders_, distance, written(first + held_by(0)), written(first + held_by(distance)),
                max_file_bytes(manifest), work);
      }
    }
  }
  mpi::agree(comm_, work.outcome());
}

/// The file of the node that precedes this one by `distance`: the node holds it if it is a partner.
std::size_t MemoryStore::held_by(int distance) const {
  return static_cast<std::size_t>((node_.node - distance + node_.nodes) % node_.nodes);
}

std::vector<std::string> MemoryStore::files_here(const Layout& layout) const {
  std::vector<std::string> names;
  for (std::size_t first = 0; first < layout.files.size(); first += layout.state_files) {
    for (int distance = 0; distance <= limits_.partners; ++distance)
      names.push_back(layout.name_of_file(first + held_by(distance)));
  }
  return names;
}

std::vector<std::string> MemoryStore::frozen_here() const {
  std::vector<std::string> names;
  for (int distance = 0; distance <= limits_.partners; ++distance)
    names.push_back(frozen_file(held_by(distance), static_cast<std::size_t>(node_.nodes)));
  return names;
}

std::uint64_t MemoryStore::bytes_here(const Layout& layout) const {
  std::int64_t bytes = 0;
  for (std::size_t first = 0; first < layout.files.size(); first += layout.state_files) {
    for (int distance = 0; distance <= limits_.partners; ++distance)
      bytes += layout.files[first + held_by(distance)].end;
  }
  return static_cast<std::uint64_t>(bytes);
}

std::vector<Recovery> MemoryStore::recoveries() const {
  std::string mine;
  mpi::all_or_none(comm_, [&] {
    if (node_.is_leader) mine = pack(memory_.inventory());
  });
  std::vector<NodeInventory> nodes;
  for (const auto& one : mpi::all_gather(comm_, std::string_view(mine))) {
    if (!one.empty()) nodes.push_back(unpack_inventory(one));
  }
  return checkpoint::recoveries(nodes);
}

fs::path MemoryStore::fetch(const Recovery& recovery) {
  const auto folder = memory_.path(recovery.number);
  mpi::all_or_none(comm_, [&] {
    if (!node_.is_leader) return;
    if (const auto bytes = recovery.missing_bytes(node_.node); bytes > 0)
      memory_.require_room(static_cast<std::uint64_t>(bytes));
    if (!recovery.manifest_to[static_cast<std::size_t>(node_.node)]) return;
    std::error_code ignored;
    fs::remove_all(folder, ignored);  // of another checkpoint under this number
    memory_.make(folder);
    fetched_.push_back(folder);
  });
  SteadyWork work;
  if (node_.is_leader) receive(recovery, work);
  mpi::agree(comm_, work.outcome());
  whole_ = recovery.number;
  return folder;
}

void MemoryStore::receive(const Recovery& recovery, SteadyWork& work) {
  const auto folder = memory_.path(recovery.number);
  for (const auto& transfer : recovery.transfers) {
    const bool takes_part = transfer.from == node_.node || transfer.to[static_cast<std::size_t>(node_.node)];
    const auto path = takes_part ? folder / recovery.name_of_file(transfer.file) : fs::path();
    if (transfer.to[static_cast<std::size_t>(node_.node)]) fetched_.push_back(path);
    broadcast_file(leaders_, transfer.from, {.path = path, .bytes = transfer.bytes}, work);
  }
  if (std::ranges::count(recovery.manifest_to, true) == 0) return;
  std::string json;
  if (recovery.manifest_from == node_.node) work.run([&] { json = manifest_text(folder); });
  json = mpi::broadcast(leaders_, std::string_view(json), recovery.manifest_from);
  if (recovery.manifest_to[static_cast<std::size_t>(node_.node)])
    work.run([&] { put_whole(folder / manifest_file, json); });
}

MemoryStore::Repair MemoryStore::repair(const Recovery& recovery) {
  drop_fetched();
  std::string damaged_here;
  mpi::all_or_none(comm_, [&] {
    if (!node_.is_leader) return;
    for (const auto& name : memory_.remove_damaged(recovery.number)) {
      damaged_here = mpi::host_name();
      log::warn(memory_.path(recovery.number) / name, " is damaged, and removed");
    }
  });
  Repair repair;
  for (auto& host : mpi::all_gather(comm_, std::string_view(damaged_here))) {
    if (!host.empty()) repair.damaged_hosts.push_back(std::move(host));
  }
  if (repair.damaged_hosts.empty()) return repair;
  for (auto& left : recoveries()) {
    if (left.number == recovery.number) repair.recovery = std::move(left);
  }
  return repair;
}

void MemoryStore::drop_fetched() {
  std::error_code ignored;
  mpi::barrier(comm_);  // all ranks have read
  for (const auto& path : std::exchange(fetched_, {})) fs::remove_all(path, ignored);
}

}  // namespace hortator::checkpoint
