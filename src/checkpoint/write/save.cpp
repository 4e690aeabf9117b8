#include "checkpoint/write/save.hpp"

#include <algorithm>

#include "checkpoint/format.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/state_outline.hpp"
#include "checkpoint/write/frozen_tensors.hpp"
#include "checkpoint/write/mpio_writer.hpp"
#include "checkpoint/write/removal.hpp"
#include "checkpoint/write/requirements.hpp"
#include "checkpoint/write/snapshot_layout.hpp"
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

/// Rank 0 removes the incomplete checkpoint. Called after all ranks have closed their files.
void abandon(const SaveTask& task) {
  if (task.rank == 0) task.replacement.abandon();
}

/// @collective
formats::Replacement replacement_of(const mpi::Communicator& comm, const fs::path& folder, bool replaces_damaged) {
  const auto target = agreed_target(comm, folder);
  return {target, mpi::broadcast(comm, formats::replacement_id()), ownership_of_replaced(replaces_damaged)};
}

void make_files(const mpi::Communicator& comm, const SaveTask& task, const SaveOptions& options) {
  mpi::all_or_none(comm, [&] {
    if (task.rank == 0 && !options.begun && !options.shares_frozen) task.replacement.begin();
  });
  if (options.writer != CheckpointWriter::direct) return;
  mpi::all_or_none(comm, [&] {
    if (!task.makes_files()) return;
    for (const auto file : task.layout.files_of(task.rank))
      formats::RawFile::create(task.path(file), formats::visible_within()).close();
  });
}

/// Links the frozen files of an earlier checkpoint, if they have the tensors. @collective
SaveTask plan_with_shared(const mpi::Communicator& comm, const formats::Replacement& replacement,
                          const Snapshot& snapshot, const SaveOptions& options) {
  mpi::all_or_none(comm, [&] {
    if (comm.rank() == 0 && !options.begun) replacement.begin();
  });
  const FrozenTensors frozen(comm, snapshot);
  const auto shared = frozen.share(options, [&](const FrozenFiles& found) {
    if (comm.rank() == 0) link_files(found, replacement.staged());
  });
  if (!shared) return plan(comm, replacement, snapshot, options, frozen.names());
  auto task = plan(comm, replacement, frozen.others(), options);
  if (comm.rank() == 0) task.shared = *shared;
  return task;
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
              const SaveOptions& options, const std::set<std::string>& frozen) {
  StateDescription description = {.common = common_outline(snapshot)};
  require_same(comm, description.common);
  description.own = all_outlines(comm, outline_of(snapshot.own));
  auto layout = make_layout(description.common, description.own, files_of(options, snapshot, comm.size()),
                            ranges_of(snapshot), frozen);
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
  const auto replacement = options.begun ? *options.begun : replacement_of(comm, folder, options.replaces_damaged);
  try {
    auto task = options.shares_frozen ? plan_with_shared(comm, replacement, snapshot, options)
                                      : plan(comm, replacement, snapshot, options);
    make_files(comm, task, options);
    return task;
  } catch (...) {
    if (comm.rank() == 0) replacement.abandon();
    throw;
  }
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
