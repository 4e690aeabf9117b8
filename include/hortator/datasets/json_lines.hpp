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

/// The lines of a file, each a JSON object. Of each, the named members are taken: numbers and lists of numbers, nested
/// to any depth, become tensors, texts stay what they are. Members that are missing, null, or of another kind are
/// errors that name file, line and member. Empty lines do not count. The file is gone through once, at the start, for
/// its line ends; lines are read and parsed when they are asked for, the first and the last one also at the start.
class HORTATOR_API JsonLines {
 public:
  JsonLines(const std::filesystem::path& path, const std::vector<TableColumn>& members);

  std::int64_t size() const;
  std::vector<std::string> columns() const;
  TableRow get(std::int64_t line) const;
  /// Lists must have one shape in all of these lines; where they have not, give data_loader() a function that pads.
  TableBatch get_batch(std::span<const std::int64_t> lines) const;

 private:
  std::shared_ptr<const data::JsonTable> table_;
};

}  // namespace hortator
