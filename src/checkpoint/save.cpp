#include "checkpoint/save.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "checkpoint/agreement.hpp"
#include "checkpoint/format.hpp"
#include "checkpoint/pack.hpp"
#include "checkpoint/progress.hpp"
#include "checkpoint/storable.hpp"
#include "checkpoint/together.hpp"
#include "io/raw_file.hpp"
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

/// Every rank's outline, on every rank. Mostly all have the same, and nothing is sent. @collective
std::vector<Outline> all_outlines(const mpi::Communicator& comm, const Outline& mine) {
  const auto packed = pack(mine);
  if (mpi::equal_on_all(comm, base::hash(packed)))
    return std::vector<Outline>(static_cast<std::size_t>(comm.size()), mine);
  std::vector<Outline> all;
  for (const auto& one : mpi::all_gather(comm, std::string_view(packed))) all.push_back(unpack(one));
  return all;
}

/// In the order of the layout, where others' own ones stay undefined.
std::vector<at::Tensor> tensors_of(const Snapshot& snapshot, const Layout& layout, int rank) {
  std::vector<at::Tensor> tensors(layout.tensors.size());
  const auto put = [&](const StateDict& state, std::size_t next) {
    for (const auto& [name, value] : state.values()) {
      if (const auto* tensor = std::get_if<at::Tensor>(&value)) tensors[next++] = *tensor;
    }
  };
  put(snapshot.common, 0);
  put(snapshot.own, layout.first_own[static_cast<std::size_t>(rank)]);
  return tensors;
}

std::vector<std::size_t> files_of(const SaveOptions& options, int ranks) {
  if (options.file_of.empty()) return std::vector<std::size_t>(static_cast<std::size_t>(ranks), 0);
  return options.file_of;
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
    if (task.makes_file()) io::RawFile::create(task.path(), io::visible_within).close();
  });
}

std::vector<Record> gather(const mpi::Communicator& comm, const Record& mine) {
  std::vector<Record> records;
  for (const auto& one : mpi::gather(comm, pack(mine))) records.push_back(*unpack_record(one));
  return records;
}

}  // namespace

Task prepare(const mpi::Communicator& comm, const fs::path& folder, const Snapshot& snapshot,
             const SaveOptions& options) {
  mpi::all_or_none(comm, [&] {
    require_storable(snapshot.common);
    require_storable(snapshot.own);
    require_free_names(snapshot.common);
  });
  const auto target = agreed_target(comm, folder);
  Description description = {.common = outline_of(snapshot.common)};
  require_same(comm, description.common);
  description.own = all_outlines(comm, outline_of(snapshot.own));
  auto layout = make_layout(description.common, description.own, files_of(options, comm.size()));
  mpi::same_on_all(comm, std::to_string(hash(layout)), "the plan of the checkpoint");
  auto sources = sources_of(work_of(layout, comm.rank()), tensors_of(snapshot, layout, comm.rank()));
  Task task = {.replacement = {target, mpi::broadcast(comm, io::replacement_id()), {is_our_file, manifest_file}},
               .description = std::move(description),
               .layout = std::move(layout),
               .rank = comm.rank(),
               .sources = std::move(sources),
               .facts = {.step = options.step, .mesh = options.mesh}};
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
    Record mine;
    mpi::all_or_none(comm, [&] {
      mine = options.writer == CheckpointWriter::direct ? write_part(task, advance) : write_part_together(comm, task);
    });
    const auto records = gather(comm, mine);
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
