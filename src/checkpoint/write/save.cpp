#include "checkpoint/write/save.hpp"

#include <algorithm>

#include "checkpoint/format.hpp"
#include "checkpoint/manifest_value.hpp"
#include "checkpoint/pack.hpp"
#include "checkpoint/storable.hpp"
#include "checkpoint/write/agreement.hpp"
#include "checkpoint/write/mpio_writer.hpp"
#include "checkpoint/write/progress.hpp"
#include "core/hash.hpp"
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
    throw UsageError({.what = "the name " + text::quote(name) + " cannot be saved",
                      .why = text::concat("'", ranks_folder, "' and '", own_prefix, "...' are the checkpoint's own"),
                      .hint = "choose another name"});
  }
}

void require_texts(const std::map<std::string, std::string>& metadata) {
  for (const auto& [name, words] : metadata) {
    if (is_utf8(name) && is_utf8(words)) continue;
    throw UsageError({.what = text::concat("the metadata ", text::quote(name), " cannot be saved: it is no UTF-8"),
                      .hint = "bytes of other kinds go into a registered object"});
  }
}

/// Every rank's outline, on every rank. Mostly all have the same, and nothing is sent. @collective
std::vector<Outline> all_outlines(const mpi::Communicator& comm, const Outline& mine) {
  const auto packed = pack(mine);
  if (mpi::equal_on_all(comm, core::hash(packed)))
    return std::vector<Outline>(static_cast<std::size_t>(comm.size()), mine);
  std::vector<Outline> all;
  for (const auto& one : mpi::all_gather(comm, std::string_view(packed))) all.push_back(unpack(one));
  return all;
}

/// What is written, in the order of the layout, where others' own ones stay undefined.
std::vector<at::Tensor> tensors_of(const Snapshot& snapshot, const Layout& layout, int rank) {
  std::vector<at::Tensor> tensors(layout.tensors.size());
  for (std::size_t i = 0; i < layout.common_tensors; ++i) {
    const auto& name = layout.tensors[i].name;
    const auto share = snapshot.shares.find(name);
    tensors[i] = share != snapshot.shares.end() ? share->second.part : snapshot.common.get<at::Tensor>(name);
  }
  auto next = layout.first_own[static_cast<std::size_t>(rank)];
  for (const auto& [name, value] : snapshot.own.values()) {
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) tensors[next++] = *tensor;
  }
  return tensors;
}

std::vector<Source> sources_of(const Snapshot& snapshot, const Layout& layout, int rank) {
  auto sources = sources_of(work_of(layout, rank), tensors_of(snapshot, layout, rank));
  for (auto& source : sources) {
    if (layout.tensors[source.slab.tensor].of_ranks.empty()) continue;
    source.first = source.slab.elements.begin;
    source.is_part = true;
  }
  return sources;
}

/// A file has one stretch of a tensor. Parts that lie in the ranks' order can only be cut so where the files do, too.
std::vector<std::size_t> files_of(const SaveOptions& options, const Snapshot& snapshot, int ranks) {
  const bool fits = snapshot.shares.empty() || std::is_sorted(options.file_of.begin(), options.file_of.end());
  if (options.file_of.empty() || !fits) return std::vector<std::size_t>(static_cast<std::size_t>(ranks), 0);
  return options.file_of;
}

void require_shares(const Snapshot& snapshot, int ranks, int rank) {
  for (const auto& [name, share] : snapshot.shares) {
    std::int64_t next = 0;
    bool good = share.of_ranks.size() == static_cast<std::size_t>(ranks) && !snapshot.common.contains(name);
    for (const auto& range : share.of_ranks) {
      good = good && (range.size() == 0 || range.begin == next);
      next = range.size() > 0 ? range.end : next;
    }
    good = good && next == share.whole.elements() &&
           formats::spec_of(share.part) ==
               formats::TensorSpec{.type = share.whole.type,
                                   .shape = {share.of_ranks[static_cast<std::size_t>(rank)].size()}};
    if (good) continue;
    throw UsageError({.what = text::concat("the ranks' parts of ", text::quote(name), " do not make up the whole"),
                      .why = text::concat("it is ", formats::to_string(share.whole))});
  }
}

Outline common_outline(const Snapshot& snapshot) {
  auto outline = outline_of(snapshot.common);
  for (const auto& [name, share] : snapshot.shares) outline.push_back({.name = name, .content = share.whole});
  std::sort(outline.begin(), outline.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return outline;
}

Shares ranges_of(const Snapshot& snapshot) {
  Shares shares;
  for (const auto& [name, share] : snapshot.shares) shares.emplace(name, share.of_ranks);
  return shares;
}

/// Rank 0 removes what there is of it. All ranks are here, and none has a file open.
void abandon(const Task& task) {
  if (task.rank == 0) task.replacement.abandon();
}

void make_files(const mpi::Communicator& comm, const Task& task, CheckpointWriter writer) {
  mpi::all_or_none(comm, [&] {
    if (task.rank == 0) task.replacement.begin();
  });
  if (writer != CheckpointWriter::direct) return;
  mpi::all_or_none(comm, [&] {
    if (task.makes_file()) formats::RawFile::create(task.path(), formats::visible_within).close();
  });
}

/// @collective
Record write_parts(const mpi::Communicator& comm, const Task& task, const SaveOptions& options,
                   const Advance& advance) {
  if (options.writer == CheckpointWriter::mpio) return write_part_together(comm, task, options.end_job);
  Record mine;
  mpi::all_or_none(comm, [&] { mine = write_part(task, advance); });
  return mine;
}

}  // namespace

Task prepare(const mpi::Communicator& comm, const fs::path& folder, const Snapshot& snapshot,
             const SaveOptions& options) {
  mpi::all_or_none(comm, [&] {
    require_storable(snapshot.common);
    require_storable(snapshot.own);
    require_free_names(snapshot.common);
    require_shares(snapshot, comm.size(), comm.rank());
    require_texts(options.metadata);
  });
  const auto target = agreed_target(comm, folder);
  Description description = {.common = common_outline(snapshot)};
  require_same(comm, description.common);
  description.own = all_outlines(comm, outline_of(snapshot.own));
  auto layout =
      make_layout(description.common, description.own, files_of(options, snapshot, comm.size()), ranges_of(snapshot));
  mpi::same_on_all(comm, std::to_string(hash(layout)), "the plan of the checkpoint");
  auto sources = sources_of(snapshot, layout, comm.rank());
  Task task = {
      .replacement = {target, mpi::broadcast(comm, formats::replacement_id()), {is_our_file, manifest_file}},
      .description = std::move(description),
      .layout = std::move(layout),
      .rank = comm.rank(),
      .sources = std::move(sources),
      .facts = {.step = options.step, .updates = options.updates, .mesh = options.mesh, .metadata = options.metadata}};
  try {
    make_files(comm, task, options.writer);
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
    const auto records = gather(comm, write_parts(comm, task, options, advance));
    mpi::all_or_none(comm, [&] {
      if (task.rank == 0) commit(task, records);
    });
  } catch (...) {
    abandon(task);
    throw;
  }
  return task.replacement.target();
}

}  // namespace hortator::checkpoint
