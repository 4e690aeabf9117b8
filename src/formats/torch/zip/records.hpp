#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace hortator::formats {

/// Why bytes are not a valid zip archive.
class ZipFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Random access to bytes: a file or memory.
struct ByteSource {
  std::uint64_t bytes = 0;
  std::function<void(std::uint64_t offset, void* data, std::size_t bytes)> read_at = {};
};

/// The position of a record's bytes in the archive.
struct ZipRecord {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool is_plain = true;  ///< neither compressed nor encrypted
};

/// The records of a zip archive by name. The constructor checks that each lies within the archive, before its
/// directory, and throws ZipFault, naming the record, for repeated names and for everything that is damaged.
class ZipRecords {
 public:
  explicit ZipRecords(const ByteSource& archive);

  const std::vector<std::string>& names() const { return names_; }  ///< in the order of the directory
  bool contains(const std::string& name) const { return records_.contains(name); }
  /// Returns null if there is no such record. Throws ZipFault if it is compressed or encrypted.
  const ZipRecord* find(const std::string& name) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, ZipRecord, std::less<>> records_;
};

}  // namespace hortator::formats
