#include "data/streams/line_reader.hpp"

#include <algorithm>

#include "core/text/text.hpp"
#include "data/files/record_file.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::data {

std::optional<std::string_view> LineReader::next() {
  const auto end = find_end();
  if (begin_ == read_.size()) return {};
  auto line = std::string_view(read_).substr(begin_, end - begin_);
  const bool has_end = end < read_.size();
  const auto bytes = line.size() + (has_end ? 1 : 0);
  begin_ += bytes;
  position_ += bytes;
  ++line_;
  if (has_end && line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// Where the line ends in `read_`.
std::size_t LineReader::find_end() {
  std::size_t searched = 0;  // bytes of the line
  while (true) {
    const auto end = read_.find('\n', begin_ + searched);
    searched = std::min(end, read_.size()) - begin_;
    if (searched > max_bytes_) {
      throw formats::FileError({.what = text::concat(position_text(file_.path(), line_ + 1),
                                                     ": the line has more than ", max_bytes_, " bytes"),
                                .why = "a damaged file, or one that expands without an end, could take all memory",
                                .hint = "set FileStreamOptions::max_record_bytes if the line is right"});
    }
    if (end != std::string::npos) return end;
    if (!read_more()) return read_.size();
  }
}

bool LineReader::read_more() {
  constexpr std::size_t piece_bytes = std::size_t{1} << 18;
  read_.erase(0, begin_);
  begin_ = 0;
  const auto before = read_.size();
  read_.resize(before + piece_bytes);
  read_.resize(before + file_.read(read_.data() + before, piece_bytes));
  return read_.size() > before;
}

}  // namespace hortator::data
