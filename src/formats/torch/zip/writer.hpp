#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/file/raw_file.hpp"

namespace hortator::formats {

/// Writes a zip archive record by record, as PyTorch lays them out: nothing compressed, data at multiples of 64 bytes.
/// Sizes and places are written in 64 bits everywhere, so that large archives are no special case.
class ZipWriter {
 public:
  explicit ZipWriter(const RawFile& file) : file_(file) {}  ///< which is borrowed, and empty

  void begin(const std::string& name);
  void append(const void* data, std::size_t bytes);
  void end();
  void add(const std::string& name, std::string_view data);  ///< the three in one

  void finish();  ///< writes the directory, which makes an archive of it

 private:
  struct Record {
    std::string name = {};
    std::uint64_t header = 0;  ///< its place
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
