#include <hortator/datasets/json_lines.hpp>
#include <span>
#include <string_view>

#include "core/text/text.hpp"
#include "data/files/json_record.hpp"
#include "data/files/record_file.hpp"
#include "formats/file/file_error.hpp"

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

JsonTable::JsonTable(const std::filesystem::path& path, const std::vector<TableColumn>& members)
    : records_(path, "read it in order with JsonStream, or unpack it with gunzip or unzstd"), members_(members) {
  require_members(members);
  scan();
  if (size() == 0) throw formats::FileError({.what = text::concat(path, " has no lines")});
  // The last line shows if the file was truncated.
  for (const auto line : {std::int64_t{0}, size() - 1}) read({&line, 1});
}

void JsonTable::scan() {
  std::vector<std::uint64_t> begins;
  bool blank = true;
  std::uint64_t line_begin = 0;
  records_.scan([&](std::uint64_t offset, std::string_view piece) {
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const char c = piece[i];
      if (c == '\n') {
        blank = true;
        line_begin = offset + i + 1;
      } else if (blank && c != ' ' && c != '\t' && c != '\r') {
        begins.push_back(line_begin);
        blank = false;
      }
    }
  });
  records_.set_records(std::move(begins));
}

std::vector<TableRow> JsonTable::read(std::span<const std::int64_t> lines) const {
  const auto texts = records_.read(lines);
  std::vector<TableRow> rows;
  rows.reserve(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    try {
      rows.push_back(parse_json_record(texts[i], members_));
    } catch (const JsonLineFault& fault) {
      throw formats::FileError({.what = text::concat(records_.position_text(lines[i]), ": ", fault.what())});
    }
  }
  return rows;
}

TableBatch JsonTable::join(std::span<const std::int64_t> lines, std::vector<TableRow> rows) const {
  TableBatch batch;
  for (const auto& member : members_) {
    if (member.type == ColumnType::text) {
      for (auto& row : rows) batch.texts[member.name].push_back(std::move(row.texts[member.name]));
      continue;
    }
    batch.tensors[member.name] =
        stack_member(rows, member.name, [&](std::size_t row) { return records_.position_text(lines[row]); });
  }
  return batch;
}

}  // namespace hortator::data

namespace hortator {

JsonLines::JsonLines(const std::filesystem::path& path, const std::vector<TableColumn>& members)
    : table_(std::make_shared<const data::JsonTable>(path, members)) {}

std::int64_t JsonLines::size() const { return table_->size(); }

std::vector<std::string> JsonLines::columns() const {
  std::vector<std::string> names;
  for (const auto& member : table_->members()) names.push_back(member.name);
  return names;
}

TableRow JsonLines::get(std::int64_t line) const { return std::move(table_->read({&line, 1}).front()); }

TableBatch JsonLines::get_batch(std::span<const std::int64_t> lines) const {
  return table_->join(lines, table_->read(lines));
}

}  // namespace hortator
