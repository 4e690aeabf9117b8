#pragma once

#include <filesystem>
#include <hortator/datasets/file_stream_options.hpp>
#include <hortator/datasets/table.hpp>
#include <hortator/export.hpp>
#include <hortator/training/state_dict.hpp>
#include <memory>
#include <optional>
#include <vector>

namespace hortator {

namespace data {
class LineFiles;
}

/// The lines of files one after the other, each a JSON object. Only the named members are read, as JsonLines reads
/// them. Files may be compressed by gzip or zstd, and a loader resumes where it was: see LineStream. Empty lines are
/// skipped. Errors name file, line and member.
///
///     auto loader = hortator::data_loader(hortator::JsonStream({"a.jsonl.gz"}, {{"x"}, {"label", ColumnType::int64}}),
///                                         {.batch_size = 32}, hortator::join_rows);
class HORTATOR_API JsonStream {
 public:
  JsonStream(const std::vector<std::filesystem::path>& files, const std::vector<TableColumn>& members,
             const FileStreamOptions& options = {});
  ~JsonStream();
  JsonStream(JsonStream&& other) noexcept;
  JsonStream& operator=(JsonStream&& other) noexcept;

  /// The next row; nothing after the last.
  std::optional<TableRow> next();
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
  std::vector<TableColumn> members_;
};

/// A batch of these rows, for data_loader(): tensors are stacked. Throws Error if tensors of one name have different
/// shapes.
HORTATOR_API TableBatch join_rows(const std::vector<TableRow>& rows);

}  // namespace hortator
