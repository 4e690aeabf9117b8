#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/write/frozen_files.hpp"
#include "checkpoint/write/hdf5_structure.hpp"
#include "checkpoint/write/tensor_source.hpp"
#include "formats/file/replacement.hpp"
#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

/// What a rank reports once its part of a checkpoint is on the disk.
struct RankReport {
  std::vector<std::uint32_t> blocks = {};  ///< checksums, in the order of its slices

  /// Facts about the file that this rank created.
  struct File {
    std::int64_t bytes = 0;
    std::uint32_t structure_crc32c = 0;
    std::vector<std::int64_t> offsets = {};  ///< of the datasets, in the order of Layout::tensors
  };
  std::vector<File> files = {};  ///< those that the rank created: of Layout::files_of() all or none
};

/// The report as bytes that carry their own checksum.
std::string pack(const RankReport& report);
/// Returns nothing if the bytes are incomplete or damaged.
std::optional<RankReport> unpack_report(std::string_view bytes);

/// Returns the reports of all ranks on rank 0, and none on the others. @collective
std::vector<RankReport> gather(const mpi::Communicator& comm, const RankReport& mine);

/// A save that all ranks have agreed on, from the view of one rank. What remains to do needs no other rank.
struct SaveTask {
  formats::Replacement replacement;
  StateDescription description;
  Layout layout;
  int rank = 0;
  std::vector<TensorSource> sources;       ///< what this rank writes
  Manifest facts;                          ///< step, mesh and other fields that do not depend on what is written
  std::optional<FrozenFiles> shared = {};  ///< on rank 0: what was linked from an earlier checkpoint

  bool makes_files() const { return creator_of(layout, file()) == rank; }
  std::size_t file() const { return layout.file_of[static_cast<std::size_t>(rank)]; }  ///< of those without frozen ones
  std::filesystem::path path(std::size_t file) const;
};

/// The ranges of bytes of file number `file` that hold tensors.
std::vector<core::Range> tensor_ranges(const Layout& layout, std::size_t file);

/// The tensors of a layout with the checksums of the whole blocks; `checksums` are those of each rank's slices.
std::vector<Manifest::Dataset> datasets_of(const Layout& layout,
                                           const std::vector<std::vector<std::uint32_t>>& checksums);

/// The manifest of what all ranks have written.
Manifest manifest_of(const SaveTask& task, const std::vector<RankReport>& reports);

/// Writes the manifest, whose text is `json`, and what else a folder with the data files needs.
void complete(const std::filesystem::path& folder, const Manifest& manifest, const std::string& json);

/// Writes the manifest and puts the folder in place. Rank 0 calls it once every rank's part is on the disk.
void commit(const SaveTask& task, const std::vector<RankReport>& reports);

}  // namespace hortator::checkpoint
