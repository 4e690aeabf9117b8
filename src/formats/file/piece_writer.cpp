#include "formats/file/piece_writer.hpp"

#include <algorithm>

namespace hortator::formats {
namespace {

constexpr std::size_t small_bytes = std::size_t{1} << 17;       // less is buffered first
constexpr std::size_t max_buffer_bytes = std::size_t{1} << 20;  // capacity of the buffer
constexpr std::int64_t max_gap = 7;  // filled with zeros; a wider gap may hold bytes of another rank
constexpr std::int64_t ahead_bytes = std::int64_t{16} << 20;  // between two requests to write back

}  // namespace

void PieceWriter::put(std::int64_t offset, const std::byte* data, std::size_t bytes) {
  const auto gap = offset - (buffer_offset_ + static_cast<std::int64_t>(buffer_.size()));
  const bool joins = gap >= 0 && gap <= max_gap && buffer_.size() + bytes <= max_buffer_bytes;
  if (!buffer_.empty() && (bytes >= small_bytes || !joins)) flush();
  if (bytes >= small_bytes) {
    file_.write_at(offset, data, bytes);
    return written(offset + static_cast<std::int64_t>(bytes));
  }
  if (buffer_.empty()) buffer_offset_ = offset;
  buffer_.resize(static_cast<std::size_t>(offset - buffer_offset_));
  buffer_.insert(buffer_.end(), data, data + bytes);
}

void PieceWriter::flush() {
  file_.write_at(buffer_offset_, buffer_.data(), buffer_.size());
  written(buffer_offset_ + static_cast<std::int64_t>(buffer_.size()));
  buffer_.clear();
}

// The disk starts to write while the next pieces are copied, instead of at fsync.
void PieceWriter::written(std::int64_t end) {
  if (write_back_end_ > end || end - write_back_end_ > 2 * ahead_bytes)
    write_back_end_ = std::max(end - ahead_bytes, std::int64_t{0});
  if (end - write_back_end_ < ahead_bytes) return;
  file_.start_writing(write_back_end_, static_cast<std::size_t>(end - write_back_end_));
  write_back_end_ = end;
}

void PieceWriter::finish() {
  if (!buffer_.empty()) flush();
}

}  // namespace hortator::formats
