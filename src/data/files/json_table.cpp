#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <hortator/datasets/json_lines.hpp>
#include <hortator/datasets/table.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "data/files/record_file.hpp"
#include "data/files/table_cells.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::data {

/// An error in a line. The caller adds the line's position.
class JsonLineFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

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

namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const TableColumn& member, const Json& value) {
  constexpr std::size_t max_characters = 60;
  auto text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > max_characters) text = text.substr(0, max_characters) + "...";
  throw JsonLineFault(
      text::concat("the member ", text::quote(member.name), " is ", text, ", expected ", name_of(member.type)));
}

// Takes the first element of each list; TensorFiller checks that the others have the same lengths.
std::vector<std::int64_t> shape_of_lists(const Json& value) {
  std::vector<std::int64_t> shape;
  for (const auto* inner = &value; inner->is_array(); inner = &inner->front()) {
    shape.push_back(static_cast<std::int64_t>(inner->size()));
    if (inner->empty()) break;
  }
  return shape;
}

/// Writes numbers one after the other into a tensor, in row-major order.
class TensorFiller {
 public:
  TensorFiller(const TableColumn& member, const Json& whole, const at::Tensor& tensor)
      : member_(member), whole_(whole), tensor_(tensor), next_(static_cast<std::byte*>(tensor.mutable_data_ptr())) {}

  void fill(const Json& value, std::int64_t depth) {
    if (depth == tensor_.dim()) return put(value);
    if (!value.is_array() || static_cast<std::int64_t>(value.size()) != tensor_.size(depth)) {
      if (!value.is_array()) refuse(member_, whole_);
      throw JsonLineFault(text::concat("the member ", text::quote(member_.name), " has lists of different lengths"));
    }
    for (const auto& element : value) fill(element, depth + 1);
  }

 private:
  void put(const Json& value) {
    switch (member_.type) {
      case ColumnType::float32:
        if (value.is_number()) return put_as<float>(value);
        break;
      case ColumnType::float64:
        if (value.is_number()) return put_as<double>(value);
        break;
      case ColumnType::int64:
        // numbers above int64 are parsed as unsigned
        if (value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() >> 63 == 0))
          return put_as<std::int64_t>(value);
        break;
      default:
        if (value.is_boolean()) return put_as<bool>(value);
    }
    refuse(member_, whole_);
  }

  template <typename Number>
  void put_as(const Json& value) {
    *reinterpret_cast<Number*>(next_) = value.get<Number>();
    next_ += sizeof(Number);
  }

  const TableColumn& member_;
  const Json& whole_;
  at::Tensor tensor_;
  std::byte* next_;
};

at::Tensor to_tensor(const Json& value, const TableColumn& member) {
  auto tensor = at::empty(shape_of_lists(value), scalar_type_of(member.type));
  TensorFiller(member, value, tensor).fill(value, 0);
  return tensor;
}

Json parse(std::string_view line) {
  if (!core::is_shallow(line)) throw JsonLineFault("the line is not valid JSON: it is nested too deeply");
  try {
    return Json::parse(line);
  } catch (const Json::exception& error) {
    throw JsonLineFault(text::concat("the line is not valid JSON: ", error.what()));
  }
}

void require_members(const std::vector<TableColumn>& members) {
  std::set<std::string> names;
  for (const auto& member : members) names.insert(member.name);
  if (!members.empty() && names.size() == members.size()) return;
  throw UsageError(
      {.what = members.empty() ? "No members of JSON lines are named" : "A member of JSON lines is named twice",
       .hint = R"(name the members to read: {{"image", ColumnType::float32}, {"label", ColumnType::int64}})"});
}

}  // namespace

// Reads these members of the JSON object in `line`. Throws JsonLineFault.
TableRow parse_json_record(std::string_view line, std::span<const TableColumn> members) {
  const auto record = parse(line);
  if (!record.is_object()) throw JsonLineFault("the line is not a JSON object");
  TableRow row;
  for (const auto& member : members) {
    const auto found = record.find(member.name);
    if (found == record.end()) throw JsonLineFault(text::concat("there is no member ", text::quote(member.name)));
    if (member.type != ColumnType::text) {
      row.tensors[member.name] = to_tensor(*found, member);
    } else if (found->is_string()) {
      row.texts[member.name] = found->get<std::string>();
    } else {
      refuse(member, *found);
    }
  }
  return row;
}

JsonTable::JsonTable(const std::filesystem::path& path, const std::vector<TableColumn>& members)
    : records_(path), members_(members) {
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
    std::vector<at::Tensor> tensors;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      tensors.push_back(rows[i].tensors[member.name]);
      if (tensors.back().sizes() == tensors.front().sizes()) continue;
      throw formats::FileError(
          {.what = text::concat(records_.position_text(lines[i]), ": the member ", text::quote(member.name),
                                " has shape ", tensors.back().sizes(), ", and ", tensors.front().sizes(), " in ",
                                records_.position_text(lines[0])),
           .why = "they are joined into one tensor",
           .hint = "give data_loader() a function that pads the rows"});
    }
    batch.tensors[member.name] = at::stack(tensors);
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
