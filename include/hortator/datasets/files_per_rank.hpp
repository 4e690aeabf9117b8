#pragma once

namespace hortator {

/// A stream of files in which each rank reads files of its own: every file is read once, and not by all ranks.
/// `data_loader(hortator::FilesPerRank<hortator::TarStream>(archives), {...})`. A rank whose files have fewer samples
/// repeats its own, and an epoch must be resumed on the same number of ranks.
template <typename Stream>
class FilesPerRank : public Stream {
 public:
  using Stream::Stream;

  /// Called by the loader.
  void shard(int world, int rank) { Stream::select_files(world, rank); }
};

}  // namespace hortator
