#include "data/files/json_record.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "data/files/table_cells.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::data {
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
  static constexpr double too_large = 0x1.ffffffp127;  // smaller numbers are rounded to finite ones of float32

  void put(const Json& value) {
    switch (member_.type) {
      case ColumnType::float32:
        if (value.is_number() && std::abs(value.get<double>()) < too_large) return put_as<float>(value);
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

}  // namespace

void require_members(const std::vector<TableColumn>& members) {
  std::set<std::string> names;
  for (const auto& member : members) names.insert(member.name);
  if (!members.empty() && names.size() == members.size()) return;
  throw UsageError(
      {.what = members.empty() ? "No members of JSON lines are named" : "A member of JSON lines is named twice",
       .hint = R"(name the members to read: {{"image", ColumnType::float32}, {"label", ColumnType::int64}})"});
}

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

at::Tensor stack_member(const std::vector<TableRow>& rows, const std::string& member,
                        const std::function<std::string(std::size_t)>& position_text) {
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    tensors.push_back(rows[i].tensors.at(member));
    if (tensors.back().sizes() == tensors.front().sizes()) continue;
    throw formats::FileError(
        {.what = text::concat(position_text(i), ": the member ", text::quote(member), " has shape ",
                              tensors.back().sizes(), ", and ", tensors.front().sizes(), " in ", position_text(0)),
         .why = "they are joined into one tensor",
         .hint = "give data_loader() a function that pads the rows"});
  }
  return at::stack(tensors);
}

}  // namespace hortator::data
