#pragma once

#include <filesystem>
#include <hortator/datasets/file_stream_options.hpp>
#include <hortator/export.hpp>
#include <hortator/training/state_dict.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hortator {

namespace data {
class LineFiles;
}

/// The lines of text files one after the other, for data_loader() and ShuffleBuffer. Files may be compressed by gzip or
/// zstd, which their first bytes show; gzip files that were joined are read as one. A loader resumes where it was: what
/// comes before in that file is decompressed and skipped. The constructor opens each file once. Errors name the file:
/// one that is truncated or damaged, and a line that is too long.
///
///     auto loader = hortator::data_loader(hortator::LineStream({"a.txt.gz", "b.txt.zst"}), {.batch_size = 32},
///                                         [](std::vector<std::string> lines) { return lines; });
class HORTATOR_API LineStream {
 public:
  explicit LineStream(const std::vector<std::filesystem::path>& files, const FileStreamOptions& options = {});
  ~LineStream();
  LineStream(LineStream&& other) noexcept;
  LineStream& operator=(LineStream&& other) noexcept;

  /// The next line, without its end; nothing after the last.
  std::optional<std::string> next();
  /// Begins again with the first file.
  void reset();
  /// Keeps every `world`-th file, from the one with the number `rank` on: see FilesPerRank. Throws UsageError if there
  /// are fewer files than ranks.
  void select_files(int world, int rank);
  /// The file, and how many bytes of its content have been read.
  void save(StateWriter& out) const;
  void load(const StateReader& in);

 private:
  std::unique_ptr<data::LineFiles> files_;
};

}  // namespace hortator
