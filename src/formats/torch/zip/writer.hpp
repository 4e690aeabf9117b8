#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/file/raw_file.hpp"

namespace hortator::formats {

/// Writes a zip archive record by record in PyTorch's layout: uncompressed, data at multiples of 64 bytes. All sizes
/// and offsets are written in 64 bits, so that large archives are not a special case.
class ZipWriter {
 public:
  explicit ZipWriter(const RawFile& file) : file_(file) {}  ///< must be empty and outlive this

  void begin(const std::string& name);
  void append(const void* data, std::size_t bytes);
  void end();
  void add(const std::string& name, std::string_view data);  ///< begin, append and end

  void finish();  ///< writes the directory, without which it is not an archive

 private:
  struct Record {
    std::string name = {};
    std::uint64_t header = 0;  ///< offset of its header
    std::uint64_t data = 0;
    std::uint64_t bytes = 0;
    std::uint32_t checksum = 0;
  };

  void write(std::string_view bytes);

  const RawFile& file_;
  std::uint64_t at_ = 0;
  std::vector<Record> records_;
};

}  // namespace hortator::formats
