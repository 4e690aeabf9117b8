#include "formats/compressed/content_reader.hpp"

#include <algorithm>
#include <utility>

#include "formats/compressed/compression.hpp"

namespace hortator::formats {
namespace {

constexpr std::size_t compressed_piece_bytes = std::size_t{1} << 18;

std::unique_ptr<Decoder> decoder_for(Compression compression) {
  switch (compression) {
    case Compression::none:
      return nullptr;
    case Compression::gzip:
      return make_gzip_decoder();
    case Compression::zstd:
      return make_zstd_decoder();
  }
  return nullptr;
}

}  // namespace

ContentReader::ContentReader(FileBytes read, std::uint64_t file_bytes)
    : read_(std::move(read)), file_bytes_(file_bytes), decoder_(decoder_for(compression_of(read_, file_bytes))) {}

std::size_t ContentReader::read(void* to, std::size_t bytes) {
  const std::span<char> all(static_cast<char*>(to), bytes);
  std::size_t done = 0;
  while (done < bytes) {
    const auto some = decoder_ ? decode_some(all.subspan(done)) : read_some(all.subspan(done));
    if (some == 0) break;
    done += some;
  }
  position_ += done;
  return done;
}

bool ContentReader::go_to(std::uint64_t position) {
  if (position <= position_) return true;
  if (!decoder_) {
    position_ = file_position_ = std::min(position, file_bytes_);
    return position_ == position;
  }
  std::string unused(std::min<std::uint64_t>(compressed_piece_bytes, position - position_), '\0');
  while (position_ < position) {
    if (read(unused.data(), std::min<std::uint64_t>(unused.size(), position - position_)) == 0) return false;
  }
  return true;
}

std::size_t ContentReader::read_some(std::span<char> out) {
  const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), file_bytes_ - file_position_));
  if (some > 0) read_(file_position_, out.data(), some);
  file_position_ += some;
  return some;
}

/// Zero bytes at the end of the content.
std::size_t ContentReader::decode_some(std::span<char> out) {
  while (true) {
    if (piece_.empty()) refill();
    const auto progress = decoder_->decode(piece_, out);
    piece_.remove_prefix(progress.taken);
    if (progress.given > 0) return progress.given;
    if (progress.taken > 0) continue;
    if (!piece_.empty()) throw CompressionFault("it is damaged");
    if (!decoder_->is_complete()) throw CompressionFault("it is truncated");
    return 0;
  }
}

void ContentReader::refill() {
  memory_.resize(compressed_piece_bytes);
  piece_ = {memory_.data(), read_some(memory_)};
}

}  // namespace hortator::formats
