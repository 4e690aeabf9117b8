#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "data/streams/content_file.hpp"

namespace hortator::data {

/// The lines of a file from where it is to the end.
class LineReader {
 public:
  /// `before`: the lines before. A line of more than `max_bytes` is an error.
  LineReader(ContentFile& file, std::uint64_t max_bytes, std::int64_t before)
      : file_(file), max_bytes_(max_bytes), line_(before), position_(file.position()) {}

  /// The next line, without its end, valid until the next call; nothing after the last. An end of "\r\n" is removed
  /// as well.
  std::optional<std::string_view> next();

  /// The number of the line that next() has returned, from 1.
  std::int64_t line() const { return line_; }
  /// Where the next line begins in the content.
  std::uint64_t position() const { return position_; }

 private:
  std::size_t find_end();
  bool read_more();

  ContentFile& file_;
  std::uint64_t max_bytes_;
  std::int64_t line_;
  std::uint64_t position_;
  std::string read_;       ///< from a line's begin to the end of what was read
  std::size_t begin_ = 0;  ///< of the next line in it
};

}  // namespace hortator::data
