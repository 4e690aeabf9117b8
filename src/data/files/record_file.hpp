#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/file/fixed_file.hpp"

namespace hortator::data {

/// A text file in records, such as lines or a table's rows, with the offset of each. Safe for several threads.
class RecordFile {
 public:
  /// Throws FileError with `compressed_hint` if gzip or zstd has compressed the file.
  explicit RecordFile(const std::filesystem::path& path,
                      const char* compressed_hint = "unpack it with gunzip or unzstd");

  /// Calls `work` with each piece of the whole file and the piece's offset.
  void scan(const std::function<void(std::uint64_t, std::string_view)>& work) const;
  /// Sets where each record begins. A record ends where the next begins, or at the end of the file.
  void set_records(std::vector<std::uint64_t> begins);

  const std::filesystem::path& path() const { return file_.path(); }
  std::int64_t size() const { return static_cast<std::int64_t>(begins_.size()); }
  /// The text of each of these records, up to the next record. Adjacent records are read together.
  std::vector<std::string> read(std::span<const std::int64_t> records) const;
  /// File and line of a record, such as "train.csv:17". Reads the file up to the record.
  std::string position_text(std::int64_t record) const;

 private:
  std::uint64_t end(std::int64_t record) const;

  formats::FixedFile file_;
  std::vector<std::uint64_t> begins_;
};

/// "train.csv:17"
std::string position_text(const std::filesystem::path& path, std::int64_t line);

}  // namespace hortator::data
