#include "checkpoint/write/save.hpp"

#include <algorithm>

#include "checkpoint/format.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/state_outline.hpp"
#include "checkpoint/write/mpio_writer.hpp"
#include "checkpoint/write/removal.hpp"
#include "checkpoint/write/requirements.hpp"
#include "core/hash.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::checkpoint {
namespace {

namespace fs = std::filesystem;

void require_free_names(const StateDict& common) {
  for (const auto& [name, value] : common.values()) {
    const auto first = text::split(name, '/').front();
    if (first != ranks_folder && !first.starts_with(own_prefix)) continue;
    throw UsageError(
        {.what = "The name " + text::quote(name) + " cannot be saved",
         .why = text::concat("'", ranks_folder, "' and '", own_prefix, "...' are reserved for the checkpoint"),
         .hint = "choose another name"});
  }
}

void require_texts(const std::map<std::string, std::string>& metadata) {
  for (const auto& [name, value] : metadata) {
    if (core::is_utf8(name) && core::is_utf8(value)) continue;
    throw UsageError({.what = text::concat("The metadata ", text::quote(name), " cannot be saved: it is not UTF-8"),
                      .hint = "put other bytes into a registered object"});
  }
}

/// Every rank's outline, on every rank. Usually all are equal, and none is sent. @collective
std::vector<StateOutline> all_outlines(const mpi::Communicator& comm, const StateOutline& mine) {
  const auto packed = pack(mine);
  if (mpi::equal_on_all(comm, core::hash(packed)))
    return std::vector<StateOutline>(static_cast<std::size_t>(comm.size()), mine);
  std::vector<StateOutline> all;
  for (const auto& one : mpi::all_gather(comm, std::string_view(packed))) all.push_back(unpack(one));
  return all;
}

/// The tensors to write, in the order of the layout. Other ranks' own tensors are undefined.
std::vector<at::Tensor> tensors_of(const Snapshot& snapshot, const Layout& layout, int rank) {
  std::vector<at::Tensor> tensors(layout.tensors.size());
  for (std::size_t i = 0; i < layout.common_tensors; ++i) {
    const auto& name = layout.tensors[i].name;
    const auto shard = snapshot.shards.find(name);
    tensors[i] = shard != snapshot.shards.end() ? shard->second.part : snapshot.common.get<at::Tensor>(name);
  }
  auto next = layout.first_own[static_cast<std::size_t>(rank)];
  for (const auto& [name, value] : snapshot.own.values()) {
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) tensors[next++] = *tensor;
  }
  return tensors;
}

std::vector<TensorSource> sources_of(const Snapshot& snapshot, const Layout& layout, int rank) {
  auto sources = sources_of(slices_of_rank(layout, rank), tensors_of(snapshot, layout, rank));
  for (auto& source : sources) {
    const auto reader = snapshot.readers.find(layout.tensors[source.slice.tensor].name);
    if (source.slice.tensor < layout.common_tensors && reader != snapshot.readers.end()) source.read = reader->second;
    if (layout.tensors[source.slice.tensor].of_ranks.empty()) continue;
    source.first = source.slice.elements.begin;
    source.is_part = true;
  }
  return sources;
}

/// A file holds one contiguous range of a tensor. Sharded tensors are in the order of the ranks, so they need files in
/// that order too; otherwise all ranks write to one file.
std::vector<std::size_t> files_of(const SaveOptions& options, const Snapshot& snapshot, int ranks) {
  const bool fits = snapshot.shards.empty() || std::ranges::is_sorted(options.file_of);
  if (options.file_of.empty() || !fits) return std::vector<std::size_t>(static_cast<std::size_t>(ranks), 0);
  return options.file_of;
}

void require_shards(const Snapshot& snapshot, int ranks, int rank) {
  for (const auto& [name, shard] : snapshot.shards) {
    std::int64_t next = 0;
    bool good = shard.of_ranks.size() == static_cast<std::size_t>(ranks) && !snapshot.common.contains(name);
    for (const auto& range : shard.of_ranks) {
      good = good && (range.size() == 0 || range.begin == next);
      next = range.size() > 0 ? range.end : next;
    }
    good = good && next == shard.whole.elements() &&
           formats::spec_of(shard.part) ==
               formats::TensorSpec{.type = shard.whole.type,
                                   .shape = {shard.of_ranks[static_cast<std::size_t>(rank)].size()}};
    if (good) continue;
    throw UsageError(
        {.what = text::concat("The ranks' parts of ", text::quote(name), " do not cover the whole tensor exactly once"),
         .why = text::concat("it is ", formats::to_string(shard.whole))});
  }
}

StateOutline common_outline(const Snapshot& snapshot) {
  auto outline = outline_of(snapshot.common);
  for (const auto& [name, shard] : snapshot.shards) outline.push_back({.name = name, .content = shard.whole});
  std::ranges::sort(outline, [](const OutlineEntry& a, const OutlineEntry& b) { return a.name < b.name; });
  return outline;
}

ShardRanges ranges_of(const Snapshot& snapshot) {
  ShardRanges shards;
  for (const auto& [name, shard] : snapshot.shards) shards.emplace(name, shard.of_ranks);
  return shards;
}

bool is_damaged(const fs::path& folder) { return has_any_file(folder) && !is_whole(folder); }

/// Rank 0 removes the incomplete checkpoint. Called after all ranks have closed their files.
void abandon(const SaveTask& task) {
  if (task.rank == 0) task.replacement.abandon();
}

/// @collective
formats::Replacement replacement_of(const mpi::Communicator& comm, const fs::path& folder, bool replaces_damaged) {
  const auto target = agreed_target(comm, folder);
  auto what = ownership();
  what.is_damaged = replaces_damaged ? has_any_file : is_damaged;
  return {target, mpi::broadcast(comm, formats::replacement_id()), std::move(what)};
}

void make_files(const mpi::Communicator& comm, const SaveTask& task, const SaveOptions& options) {
  mpi::all_or_none(comm, [&] {
    if (task.rank == 0 && !options.begun) task.replacement.begin();
  });
  if (options.writer != CheckpointWriter::direct) return;
  mpi::all_or_none(comm, [&] {
    if (task.makes_file()) formats::RawFile::create(task.path(), formats::visible_within).close();
  });
}

/// @collective
RankReport write_parts(const mpi::Communicator& comm, const SaveTask& task, const SaveOptions& options,
                       const Advance& advance) {
  if (options.writer == CheckpointWriter::mpio) return write_part_with_mpio(comm, task, options.end_job);
  RankReport mine;
  mpi::all_or_none(comm, [&] { mine = write_part(task, advance); });
  return mine;
}

}  // namespace

formats::Replacement begin(const mpi::Communicator& comm, const fs::path& folder, bool replaces_damaged) {
  auto replacement = replacement_of(comm, folder, replaces_damaged);
  try {
    mpi::all_or_none(comm, [&] {
      if (comm.rank() != 0) return;
      replacement.begin();
      fs::create_directory(replacement.staged() / hooks_folder);
    });
  } catch (...) {
    if (comm.rank() == 0) replacement.abandon();
    throw;
  }
  return replacement;
}

SaveTask plan(const mpi::Communicator& comm, formats::Replacement replacement, const Snapshot& snapshot,
              const SaveOptions& options) {
  StateDescription description = {.common = common_outline(snapshot)};
  require_same(comm, description.common);
  description.own = all_outlines(comm, outline_of(snapshot.own));
  auto layout =
      make_layout(description.common, description.own, files_of(options, snapshot, comm.size()), ranges_of(snapshot));
  mpi::same_on_all(comm, std::to_string(hash(layout)), "the layout of the checkpoint");
  auto sources = sources_of(snapshot, layout, comm.rank());
  return {
      .replacement = std::move(replacement),
      .description = std::move(description),
      .layout = std::move(layout),
      .rank = comm.rank(),
      .sources = std::move(sources),
      .facts = {.step = options.step, .updates = options.updates, .mesh = options.mesh, .metadata = options.metadata}};
}

void require_complete(const mpi::Communicator& comm, const Snapshot& snapshot, const SaveOptions& options) {
  mpi::all_or_none(comm, [&] {
    require_storable(snapshot.common);
    require_storable(snapshot.own);
    require_free_names(snapshot.common);
    require_shards(snapshot, comm.size(), comm.rank());
    require_texts(options.metadata);
  });
}

SaveTask prepare(const mpi::Communicator& comm, const fs::path& folder, const Snapshot& snapshot,
                 const SaveOptions& options) {
  require_complete(comm, snapshot, options);
  auto replacement = options.begun ? *options.begun : replacement_of(comm, folder, options.replaces_damaged);
  auto task = plan(comm, std::move(replacement), snapshot, options);
  try {
    make_files(comm, task, options);
  } catch (...) {
    abandon(task);
    throw;
  }
  return task;
}

fs::path save(const mpi::Communicator& comm, const fs::path& folder, const Snapshot& snapshot,
              const SaveOptions& options) {
  return save(comm, folder, snapshot, options, {});
}

fs::path save(const mpi::Communicator& comm, const fs::path& folder, const Snapshot& snapshot,
              const SaveOptions& options, const Advance& advance) {
  const auto task = prepare(comm, folder, snapshot, options);
  try {
    const auto reports = gather(comm, write_parts(comm, task, options, advance));
    mpi::all_or_none(comm, [&] {
      if (task.rank == 0) commit(task, reports);
    });
  } catch (...) {
    abandon(task);
    throw;
  }
  return task.replacement.target();
}

}  // namespace hortator::checkpoint
