#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/file/fixed_file.hpp"

namespace hortator::data {

/// A file of text in records, by the place of each: a table's rows, or lines. From any thread.
class RecordFile {
 public:
  explicit RecordFile(const std::filesystem::path& path) : file_(path) {}

  /// Hands on the whole file, piece by piece, with the offset of each.
  void scan(const std::function<void(std::uint64_t, std::string_view)>& work) const;
  /// Where each record begins; one ends where the next begins, or the file ends.
  void set_records(std::vector<std::uint64_t> begins);

  const std::filesystem::path& path() const { return file_.path(); }
  const formats::FixedFile& file() const { return file_; }
  std::int64_t size() const { return static_cast<std::int64_t>(begins_.size()); }
  /// The text of each of these records, with what follows it up to the next. Neighbours are read together.
  std::vector<std::string> read(std::span<const std::int64_t> records) const;
  /// "train.csv:17": file and line. Reads the file up to there.
  std::string place(std::int64_t record) const;

 private:
  std::uint64_t end(std::int64_t record) const;

  formats::FixedFile file_;
  std::vector<std::uint64_t> begins_;
};

/// "train.csv:17"
std::string place_text(const std::filesystem::path& path, std::int64_t line);

}  // namespace hortator::data
