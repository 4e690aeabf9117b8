#include "formats/file/piece_writer.hpp"

#include <algorithm>

namespace hortator::formats {
namespace {

constexpr std::size_t small_bytes = std::size_t{1} << 17;     // less is gathered first
constexpr std::size_t gathered_bytes = std::size_t{1} << 20;  // of gathered pieces at most
constexpr std::int64_t widest_gap = 7;  // zeros are written over it; where it is wider another's bytes may lie in it
constexpr std::int64_t ahead_bytes = std::int64_t{16} << 20;  // written between two hints to the system

}  // namespace

void PieceWriter::put(std::int64_t offset, const std::byte* data, std::size_t bytes) {
  const auto gap = offset - (gathered_at_ + static_cast<std::int64_t>(gathered_.size()));
  const bool joins = gap >= 0 && gap <= widest_gap && gathered_.size() + bytes <= gathered_bytes;
  if (!gathered_.empty() && (bytes >= small_bytes || !joins)) flush();
  if (bytes >= small_bytes) {
    file_.write_at(offset, data, bytes);
    return written(offset + static_cast<std::int64_t>(bytes));
  }
  if (gathered_.empty()) gathered_at_ = offset;
  gathered_.resize(static_cast<std::size_t>(offset - gathered_at_));
  gathered_.insert(gathered_.end(), data, data + bytes);
}

void PieceWriter::flush() {
  file_.write_at(gathered_at_, gathered_.data(), gathered_.size());
  written(gathered_at_ + static_cast<std::int64_t>(gathered_.size()));
  gathered_.clear();
}

// The disk works while the next pieces are copied, in place of beginning with the last fsync.
void PieceWriter::written(std::int64_t end) {
  if (begun_ > end || end - begun_ > 2 * ahead_bytes) begun_ = std::max(end - ahead_bytes, std::int64_t{0});
  if (end - begun_ < ahead_bytes) return;
  file_.start_writing(begun_, static_cast<std::size_t>(end - begun_));
  begun_ = end;
}

void PieceWriter::finish() {
  if (!gathered_.empty()) flush();
}

}  // namespace hortator::formats
