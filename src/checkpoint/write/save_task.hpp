#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/write/hdf5_structure.hpp"
#include "checkpoint/write/rank_report.hpp"
#include "checkpoint/write/tensor_source.hpp"
#include "formats/file/replacement.hpp"

namespace hortator::checkpoint {

/// A save that all ranks have agreed on, from the view of one rank. What remains to do needs no other rank.
struct SaveTask {
  formats::Replacement replacement;
  StateDescription description;
  Layout layout;
  int rank = 0;
  std::vector<TensorSource> sources;  ///< what this rank writes
  Manifest facts;                     ///< step, mesh and other fields that do not depend on what is written

  bool makes_file() const { return creator_of(layout, file()) == rank; }
  std::size_t file() const { return layout.file_of[static_cast<std::size_t>(rank)]; }
  std::filesystem::path path() const;  ///< of the file that this rank writes to
};

/// The ranges of bytes of file number `file` that hold tensors.
std::vector<core::Range> tensor_ranges(const Layout& layout, std::size_t file);

/// Writes the manifest and puts the folder in place. Rank 0 calls it once every rank's part is on the disk.
void commit(const SaveTask& task, const std::vector<RankReport>& reports);

}  // namespace hortator::checkpoint
