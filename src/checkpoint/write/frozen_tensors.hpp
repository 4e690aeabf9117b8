#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "checkpoint/write/frozen_files.hpp"
#include "checkpoint/write/save.hpp"
#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

/// The frozen tensors of a snapshot, which are written once: later checkpoints link the files that have them.
class FrozenTensors {
 public:
  /// Joins the names that the ranks know. `snapshot` must outlive this. @collective
  FrozenTensors(const mpi::Communicator& comm, const Snapshot& snapshot);

  const std::set<std::string>& names() const { return names_; }
  /// The snapshot without them.
  Snapshot others() const;

  /// Finds one of `options.earlier` whose frozen files have exactly these tensors, by the checksums of their blocks: a
  /// tensor that was written to since then is never taken for frozen. Calls `link` with it on all ranks. Returns
  /// nothing on all ranks if there is none, or `link` throws on any; rank 0 warns of that. On ranks other than 0 the
  /// result has no tensors. Reads all frozen tensors, if there is an earlier checkpoint. @collective
  std::optional<FrozenFiles> share(const SaveOptions& options,
                                   const std::function<void(const FrozenFiles&)>& link) const;

 private:
  Snapshot common_entries(bool are_frozen) const;
  std::optional<FrozenFiles> find(const SaveOptions& options) const;

  const mpi::Communicator& comm_;
  const Snapshot& snapshot_;
  std::set<std::string> names_;
};

}  // namespace hortator::checkpoint
