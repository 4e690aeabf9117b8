#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/datasets/file_stream_options.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/streams/file_sequence.hpp"
#include "data/streams/line_reader.hpp"

namespace hortator::data {

/// The lines of files, one file after the other.
class LineFiles {
 public:
  LineFiles(std::vector<std::filesystem::path> files, const FileStreamOptions& options)
      : files_(std::move(files)), options_(options) {}
  LineFiles(const LineFiles&) = delete;
  LineFiles& operator=(const LineFiles&) = delete;

  /// The next line, without its end, valid until the next call; nothing after the last line of the last file.
  std::optional<std::string_view> next();
  /// "train.jsonl.gz:17": the line that next() has returned.
  std::string position_text() const;

  void reset();
  void select(int world, int rank);
  void save(StateWriter& out) const;
  void load(const StateReader& in);

 private:
  void begin(std::int64_t lines_before);

  FileSequence files_;
  FileStreamOptions options_;
  std::filesystem::path path_;
  std::optional<LineReader> lines_;  ///< of the open file
  std::int64_t before_ = 0;          ///< lines before the position at which the next file is opened
};

}  // namespace hortator::data
