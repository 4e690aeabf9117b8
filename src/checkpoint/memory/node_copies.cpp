#include "checkpoint/memory/node_copies.hpp"

#include <algorithm>
#include <cstdint>
#include <hortator/error.hpp>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/memory/file_transfer.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/removal.hpp"
#include "core/checksum/crc.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"

namespace hortator::checkpoint {
namespace {

namespace fs = std::filesystem;

/// One after the other, so that a node that shares the folder with the first one sees what that one has begun.
/// @collective
void begin_on_each_node(const mpi::Communicator& comm, OwnNode node, const formats::Replacement& replacement) {
  mpi::all_or_none(comm, [&] {
    if (comm.rank() == 0) replacement.begin();
  });
  mpi::all_or_none(comm, [&] {
    if (!node.is_leader || comm.rank() == 0) return;
    if (!fs::exists(replacement.staged())) return replacement.begin();
    refuse_shared_folder(replacement.target());
  });
}

/// Sends each node the files that the others have written. @collective over the leaders
void exchange_files(const mpi::Communicator& leaders, const fs::path& folder, const Manifest& manifest,
                    SteadyWork& work) {
  for (std::size_t file = 0; file < manifest.files.size(); ++file) {
    const auto& [name, bytes] = std::pair(manifest.files[file].name, manifest.files[file].bytes);
    broadcast_file(leaders, static_cast<int>(file), {.path = folder / name, .bytes = bytes}, work);
  }
}

/// What all ranks write, in the folder of each node. @collective
void write_on_each_node(const mpi::Communicator& comm, OwnNode node, const SaveTask& task) {
  const auto leaders = comm.split(node.is_leader ? 0 : 1, node.number);
  mpi::all_or_none(comm, [&] {
    if (!task.makes_files()) return;
    for (const auto file : task.layout.files_of(task.rank)) formats::RawFile::create(task.path(file)).close();
  });
  RankReport mine;
  mpi::all_or_none(comm, [&] { mine = write_part(task); });
  const auto reports = gather(comm, mine);
  std::string json;
  mpi::all_or_none(comm, [&] {
    if (comm.rank() == 0) json = to_json(manifest_of(task, reports));
  });
  json = mpi::broadcast(comm, std::string_view(json));
  Manifest manifest;
  mpi::all_or_none(comm, [&] { manifest = parse_manifest(json); });
  SteadyWork work;
  if (node.is_leader) {
    exchange_files(leaders, task.replacement.staged(), manifest, work);
    work.run([&] { complete(task.replacement.staged(), manifest, json); });
  }
  mpi::agree(comm, work.outcome());
}

struct Copy {
  fs::path folder;
  std::uint32_t manifest = 0;  ///< checksum
};

void add_whole(std::vector<Copy>& copies, const fs::path& folder) {
  if (!is_whole(folder)) return;
  const auto json = manifest_text(folder);
  copies.push_back({.folder = folder, .manifest = core::crc32c(json.data(), json.size())});
}

/// The whole checkpoints at `folder`, and those that killed saves have left beside it.
std::vector<Copy> copies_here(const fs::path& folder) {
  std::vector<Copy> copies;
  add_whole(copies, folder);
  const auto prefix = folder.filename().string() + ".";
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder.parent_path(), unreadable)) {
    if (entry.path().filename().string().starts_with(prefix)) add_whole(copies, entry.path());
  }
  return copies;
}

const Copy* copy_of(const std::vector<Copy>& copies, std::uint32_t manifest) {
  const auto found = std::ranges::find(copies, manifest, &Copy::manifest);
  return found == copies.end() ? nullptr : &*found;
}

}  // namespace

fs::path own_target(const mpi::Communicator& comm, const fs::path& folder) {
  fs::path target;
  mpi::all_or_none(comm, [&] {
    if (folder.empty()) throw UsageError({.what = "No folder to save to was given"});
    target = fs::weakly_canonical((fs::absolute(folder) / "").lexically_normal().parent_path());
  });
  return target;
}

void refuse_shared_folder(const fs::path& folder) {
  throw UsageError({.what = text::concat("Several nodes see the same folder ", folder.string()),
                    .why = "with project.save_on_each_node each node writes a whole copy to a disk of its own",
                    .hint = "leave save_on_each_node out: all ranks then write one copy together"});
}

fs::path save_on_each_node(const mpi::Communicator& comm, OwnNode node, const fs::path& folder,
                           const Snapshot& snapshot, SaveOptions options) {
  require_complete(comm, snapshot, options);
  options.file_of.clear();
  for (const int number : mpi::all_gather(comm, node.number))
    options.file_of.push_back(static_cast<std::size_t>(number));
  const auto target = own_target(comm, folder);
  const formats::Replacement replacement(target, mpi::broadcast(comm, formats::replacement_id()),
                                         ownership_of_replaced(options.replaces_damaged));
  bool has_begun = comm.rank() == 0;
  try {
    begin_on_each_node(comm, node, replacement);
    has_begun = node.is_leader;
    write_on_each_node(comm, node, plan(comm, replacement, snapshot, options));
  } catch (...) {
    if (has_begun) replacement.abandon();
    throw;
  }
  mpi::all_or_none(comm, [&] {
    if (node.is_leader) replacement.publish();
  });
  return target;
}

fs::path find_copy(const mpi::Communicator& comm, const fs::path& folder) {
  std::vector<Copy> mine;
  mpi::all_or_none(comm, [&] {
    if (comm.rank() == 0) read_manifest(folder);  // throws where it cannot be read
    mine = copies_here(folder);
  });
  const auto count = mpi::broadcast(comm, mine.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto* here = copy_of(mine, mpi::broadcast(comm, comm.rank() == 0 ? mine[i].manifest : 0));
    if (mpi::all_reduce(comm, here != nullptr, mpi::Op::logical_and)) return here->folder;
  }
  const auto first = mpi::broadcast(comm, comm.rank() == 0 && !mine.empty() ? mine.front().manifest : 0);
  mpi::all_or_none(comm, [&] {
    if (copy_of(mine, first) != nullptr) return;
    throw formats::FileError({.what = text::concat("the node ", mpi::host_name(), " has no copy of the checkpoint ",
                                                   folder.string(), " of the first node")});
  });
  throw formats::FileError({.what = text::concat("nodes have different checkpoints at ", folder.string())});
}

}  // namespace hortator::checkpoint
