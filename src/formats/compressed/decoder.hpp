#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>

/// Content that gzip or zstd has compressed.
namespace hortator::formats {

/// Why content cannot be decompressed. The caller adds the name of the file.
class CompressionFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Decompresses content that arrives in pieces, into a limited amount of memory. Members of gzip and frames of zstd may
/// follow each other.
class Decoder {
 public:
  struct Progress {
    std::size_t taken = 0;  ///< bytes of the input
    std::size_t given = 0;  ///< bytes of the content
  };

  Decoder() = default;
  virtual ~Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Decompresses some of `in` into `out`, which is not empty. With an empty `in` it gives what is left of earlier
  /// input. Throws CompressionFault if the input is damaged.
  virtual Progress decode(std::string_view in, std::span<char> out) = 0;
  /// Whether the input may end here.
  virtual bool is_complete() const = 0;
};

/// The decoders. Throw UsageError if Hortator was built without the library that they need.
std::unique_ptr<Decoder> make_gzip_decoder();
std::unique_ptr<Decoder> make_zstd_decoder();

}  // namespace hortator::formats
