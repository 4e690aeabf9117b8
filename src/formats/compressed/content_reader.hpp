#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "formats/compressed/decoder.hpp"
#include "formats/file/file_bytes.hpp"

namespace hortator::formats {

/// The content of a file from the front to the back, decompressed if it is compressed. Keeps one piece of the file in
/// memory, however much it expands to.
class ContentReader {
 public:
  ContentReader(FileBytes read, std::uint64_t file_bytes);

  /// Where the next byte is in the content.
  std::uint64_t position() const { return position_; }

  /// Reads that many bytes, or fewer at the end of the content. Throws CompressionFault if the file is truncated or
  /// damaged.
  std::size_t read(void* to, std::size_t bytes);
  /// Goes forward to a position; does nothing if it is behind. Returns false, at the end, if the content ends before
  /// it.
  bool go_to(std::uint64_t position);

 private:
  std::size_t read_some(std::span<char> out);
  std::size_t decode_some(std::span<char> out);
  void refill();

  FileBytes read_;
  std::uint64_t file_bytes_, file_position_ = 0, position_ = 0;
  std::unique_ptr<Decoder> decoder_;  ///< null for plain content
  std::string memory_;                ///< a piece of a compressed file
  std::string_view piece_;            ///< what is left of it
};

}  // namespace hortator::formats
