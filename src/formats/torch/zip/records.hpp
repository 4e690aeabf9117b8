#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace hortator::formats {

/// Why bytes are no zip archive.
class ZipFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Bytes at offsets: a file, or memory.
struct ByteSource {
  std::uint64_t bytes = 0;
  std::function<void(std::uint64_t offset, void* data, std::size_t bytes)> read_at = {};
};

/// Where the bytes of a record lie in its archive.
struct ZipRecord {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool is_plain = true;  ///< neither compressed nor encrypted
};

/// The records of a zip archive by their names. Each lies within the archive, in front of its directory. ZipFault,
/// which names the record, for compressed or encrypted ones, for names that come twice, and for all that is damaged.
class ZipRecords {
 public:
  explicit ZipRecords(const ByteSource& archive);

  const std::vector<std::string>& names() const { return names_; }  ///< in the order of the directory
  bool contains(const std::string& name) const { return records_.contains(name); }
  /// Null where there is none. ZipFault for one that is compressed or encrypted.
  const ZipRecord* find(const std::string& name) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, ZipRecord, std::less<>> records_;
};

}  // namespace hortator::formats
