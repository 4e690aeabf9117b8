#include "checkpoint/save.hpp"

#include <array>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "checkpoint/agreement.hpp"
#include "checkpoint/format.hpp"
#include "checkpoint/outline.hpp"
#include "checkpoint/pack.hpp"
#include "checkpoint/share.hpp"
#include "checkpoint/storable.hpp"
#include "checkpoint/structure.hpp"
#include "io/replacement.hpp"
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

/// Every rank's outline, on rank 0. Mostly all have the same, and nothing is sent. @collective
std::vector<Outline> gather_outlines(const mpi::Communicator& comm, const Outline& mine) {
  const auto packed = pack(mine);
  const bool at_root = comm.rank() == 0;
  if (mpi::equal_on_all(comm, base::hash(packed))) {
    return std::vector<Outline>(at_root ? static_cast<std::size_t>(comm.size()) : 0, mine);
  }
  std::vector<Outline> all;
  for (const auto& one : mpi::gather(comm, packed)) all.push_back(unpack(one));
  return all;
}

/// Fills the staged folder and puts it in place. @collective
void write(const mpi::Communicator& comm, const io::Replacement& replacement, const Snapshot& snapshot,
           const Outline& common) {
  const auto owns = gather_outlines(comm, outline_of(snapshot.own));
  const auto file = replacement.staged() / state_file;
  Structure structure;
  mpi::all_or_none(comm, [&] {
    if (comm.rank() != 0) return;
    replacement.begin();
    structure = write_structure(file, common, owns);
  });
  const std::array shares = {share_of_common(comm, snapshot.common, structure.common),
                             share_of_own(comm, snapshot.own, structure.own)};
  mpi::all_or_none(comm, [&] { write_shares(file, shares); });
  mpi::all_or_none(comm, [&] {
    if (comm.rank() == 0) replacement.publish();
  });
}

}  // namespace

fs::path save(const mpi::Communicator& comm, const fs::path& folder, const Snapshot& snapshot) {
  mpi::all_or_none(comm, [&] {
    require_storable(snapshot.common);
    require_storable(snapshot.own);
    require_free_names(snapshot.common);
  });
  auto target = agreed_target(comm, folder);
  const auto common = outline_of(snapshot.common);
  require_same(comm, common);
  const io::Replacement replacement(target, mpi::broadcast(comm, io::replacement_id()), {state_file});
  try {
    write(comm, replacement, snapshot, common);
  } catch (...) {
    // All ranks are here, and none has the file open.
    if (comm.rank() == 0) replacement.abandon();
    throw;
  }
  return target;
}

}  // namespace hortator::checkpoint
