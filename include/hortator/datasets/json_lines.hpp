#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/datasets/table.hpp>
#include <memory>
#include <span>

namespace hortator {

namespace data {
class JsonTable;
}

/// The lines of a file, each a JSON object. The named members are read: numbers and lists of numbers, nested to any
/// depth, become tensors; strings become text. A member that is missing, null or of another type is an error that names
/// file, line and member. Empty lines are skipped. The constructor scans the file once for line breaks and parses the
/// first and the last line; other lines are read and parsed on demand.
class HORTATOR_API JsonLines {
 public:
  JsonLines(const std::filesystem::path& path, const std::vector<TableColumn>& members);

  std::int64_t size() const;
  std::vector<std::string> columns() const;
  TableRow get(std::int64_t line) const;
  /// Lists must have the same shape in all of these lines; otherwise give data_loader() a function that pads.
  TableBatch get_batch(std::span<const std::int64_t> lines) const;

 private:
  std::shared_ptr<const data::JsonTable> table_;
};

}  // namespace hortator
