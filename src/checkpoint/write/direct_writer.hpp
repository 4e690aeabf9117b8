#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/structure.hpp"
#include "checkpoint/write/record.hpp"
#include "checkpoint/write/source.hpp"
#include "formats/file/replacement.hpp"

namespace hortator::checkpoint {

/// A save that all ranks have agreed on, as one of them sees it: what is left to do needs no other rank.
struct Task {
  formats::Replacement replacement;
  Description description;
  Layout layout;
  int rank = 0;
  std::vector<Source> sources;  ///< this rank's work
  Manifest facts;               ///< step, mesh and the like

  bool makes_file() const { return creator_of(layout, file()) == rank; }
  std::size_t file() const { return layout.file_of[static_cast<std::size_t>(rank)]; }
  std::filesystem::path path() const;  ///< of the file into which this rank writes
};

/// Writes this rank's part past HDF5's own writing, and its file's structure if this rank makes it. Returns when all of
/// that is on the disk.
Record write_part(const Task& task);

/// The stretches of file number `index` in which tensors' bytes lie.
std::vector<core::Range> stretches_of(const Layout& layout, std::size_t index);

/// By rank 0, when every rank's part is on the disk: writes the manifest and puts the folder in place.
void commit(const Task& task, const std::vector<Record>& records);

}  // namespace hortator::checkpoint
