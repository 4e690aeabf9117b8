#pragma once

#include <functional>
#include <string>
#include <vector>

namespace hortator::checkpoint {
class Reader;
struct Snapshot;
}  // namespace hortator::checkpoint
namespace hortator::parallel {
struct RankGroup;
}

namespace hortator::accelerator {

struct SnapshotDraft;

/// A further part of checkpoints, whose tensors may differ between ranks. Restored after everything else was found to
/// fit.
struct CheckpointPart {
  std::function<void(checkpoint::Snapshot&)> save = {};
  std::function<std::vector<std::string>(const checkpoint::Reader&)> misfits;  ///< a line each; empty if it fits
  std::function<void(const checkpoint::Reader&)> load;
  std::string name = {};      ///< of the part, if there may be several of its kind
  std::string averages = {};  ///< what an Ema is called in checkpoints
  /// Copies the part in memory, and returns a function that puts the copy back. Both are local.
  std::function<std::function<void()>()> remember = {};
  /// Gives all of these ranks the part of one of them. @collective
  std::function<void(const parallel::RankGroup& ranks, int root)> take_over = {};
  /// In place of `save`: for tensors that may be divided, whose parts must be joined.
  std::function<void(SnapshotDraft&)> draft = {};
};

}  // namespace hortator::accelerator
