#pragma once

#include <hortator/datasets/json_lines.hpp>

#include "data/files/record_file.hpp"

namespace hortator::data {

/// A file of JSON lines and the members to read.
class JsonTable {
 public:
  JsonTable(const std::filesystem::path& path, const std::vector<TableColumn>& members);

  std::int64_t size() const { return records_.size(); }
  const std::vector<TableColumn>& members() const { return members_; }
  std::vector<TableRow> read(std::span<const std::int64_t> lines) const;
  TableBatch join(std::span<const std::int64_t> lines, std::vector<TableRow> rows) const;

 private:
  void scan();

  RecordFile records_;
  std::vector<TableColumn> members_;
};

}  // namespace hortator::data
