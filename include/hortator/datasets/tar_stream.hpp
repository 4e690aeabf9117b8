#pragma once

#include <filesystem>
#include <hortator/datasets/file_stream_options.hpp>
#include <hortator/datasets/tar_shards.hpp>
#include <hortator/export.hpp>
#include <hortator/training/state_dict.hpp>
#include <memory>
#include <optional>
#include <vector>

namespace hortator {

namespace data {
class TarFiles;
}

/// The samples of tar archives in the layout of WebDataset, one after the other. Archives may be compressed by gzip or
/// zstd, and a loader resumes where it was: see LineStream. For archives that are not compressed, TarShards reads any
/// sample, and so shuffles all of them. Errors name the archive and the file: an archive that is truncated, damaged or
/// has links; two files of a sample with one extension; a file that is too large.
///
///     auto loader = hortator::data_loader(
///         hortator::TarStream({"train-000.tar.gz", "train-001.tar.zst"}), {.batch_size = 32},
///         [](std::vector<hortator::TarSample> samples) { return samples; });
class HORTATOR_API TarStream {
 public:
  explicit TarStream(const std::vector<std::filesystem::path>& archives, const FileStreamOptions& options = {});
  ~TarStream();
  TarStream(TarStream&& other) noexcept;
  TarStream& operator=(TarStream&& other) noexcept;

  /// The next sample; nothing after the last.
  std::optional<TarSample> next();
  /// Begins again with the first file.
  void reset();
  /// Keeps every `world`-th file, from the one with the number `rank` on: see FilesPerRank. Throws UsageError if there
  /// are fewer files than ranks.
  void select_files(int world, int rank);
  /// The file, and how many bytes of its content have been read.
  void save(StateWriter& out) const;
  void load(const StateReader& in);

 private:
  std::unique_ptr<data::TarFiles> files_;
};

}  // namespace hortator
