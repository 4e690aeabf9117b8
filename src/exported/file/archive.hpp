#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/torch/zip/records.hpp"

namespace hortator::exported {

/// The records of a .pt2 file: exported programs and their tensors. Throws ExportFault or formats::ZipFault for bytes
/// that are not such a file.
class Archive {
 public:
  explicit Archive(formats::ByteSource bytes);

  /// Names of the programs, such as "model", in the order of the file.
  const std::vector<std::string>& programs() const { return programs_; }
  /// Names of all records, without their folder, in the order of the file.
  std::vector<std::string> records() const;
  const std::string& folder() const { return folder_; }
  bool contains(const std::string& record) const { return records_.contains(folder_ + record); }
  /// The contents of a record of text. Throws if it is missing or unreasonably large.
  std::string text(const std::string& record) const;
  std::uint64_t size(const std::string& record) const;
  /// Reads bytes of a record, which must lie within it.
  void read(const std::string& record, std::uint64_t offset, void* to, std::size_t bytes) const;

 private:
  const formats::ZipRecord& find(const std::string& record) const;

  formats::ByteSource bytes_;
  formats::ZipRecords records_;
  std::string folder_;  ///< all records are in one folder, of any name
  std::vector<std::string> programs_;
};

}  // namespace hortator::exported
