#include "formats/safetensors/entry.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

constexpr auto none = at::ScalarType::Undefined;
constexpr std::array types = {
    SafetensorsType{"BOOL", 8, at::kBool},
    SafetensorsType{"F4", 4, at::ScalarType::Float4_e2m1fn_x2},  // a tensor stores two in one element
    SafetensorsType{"F6_E2M3", 6, none},
    SafetensorsType{"F6_E3M2", 6, none},
    SafetensorsType{"U8", 8, at::kByte},
    SafetensorsType{"I8", 8, at::kChar},
    SafetensorsType{"F8_E5M2", 8, at::kFloat8_e5m2},
    SafetensorsType{"F8_E4M3", 8, at::kFloat8_e4m3fn},
    SafetensorsType{"F8_E8M0", 8, at::ScalarType::Float8_e8m0fnu},
    SafetensorsType{"F8_E4M3FNUZ", 8, at::kFloat8_e4m3fnuz},
    SafetensorsType{"F8_E5M2FNUZ", 8, at::kFloat8_e5m2fnuz},
    SafetensorsType{"I16", 16, at::kShort},
    SafetensorsType{"U16", 16, at::kUInt16},
    SafetensorsType{"F16", 16, at::kHalf},
    SafetensorsType{"BF16", 16, at::kBFloat16},
    SafetensorsType{"I32", 32, at::kInt},
    SafetensorsType{"U32", 32, at::kUInt32},
    SafetensorsType{"F32", 32, at::kFloat},
    SafetensorsType{"C64", 64, at::kComplexFloat},
    SafetensorsType{"F64", 64, at::kDouble},
    SafetensorsType{"I64", 64, at::kLong},
    SafetensorsType{"U64", 64, at::kUInt64},
};

const SafetensorsType* type_named(const std::string& name) {
  for (const auto& type : types) {
    if (type.name == name) return &type;
  }
  std::vector<std::string_view> known;
  for (const auto& type : types) known.push_back(type.name);
  throw JsonFault(text::concat("unknown dtype ", quoted_json(name), ", expected one of ", text::join(known)));
}

// A name, or, as the safetensors library accepts, an object {name: null}.
const SafetensorsType* to_type(const JsonValue& value) {
  if (const auto* name = std::get_if<std::string>(&value.content)) return type_named(*name);
  const auto* object = std::get_if<JsonValue::Object>(&value.content);
  if (object == nullptr) value.refuse("a string");
  if (object->size() != 1) throw JsonFault(text::concat("expected one name, got ", object->size()));
  const auto* type = type_named(object->front().first);
  const auto& unit = object->front().second;
  if (!std::holds_alternative<std::nullptr_t>(unit.content)) unit.refuse("null");
  return type;
}

std::uint64_t to_size(const JsonValue& value) {
  if (const auto* size = std::get_if<std::uint64_t>(&value.content)) return *size;
  value.refuse("a whole number from 0");
}

const JsonValue::Array& to_array(const JsonValue& value, std::string_view expected) {
  if (const auto* array = std::get_if<JsonValue::Array>(&value.content)) return *array;
  value.refuse(expected);
}

std::vector<std::uint64_t> to_shape(const JsonValue& value) {
  std::vector<std::uint64_t> shape;
  for (const auto& size : to_array(value, "a list of sizes")) shape.push_back(to_size(size));
  return shape;
}

std::pair<std::uint64_t, std::uint64_t> to_offsets(const JsonValue& value) {
  const auto& offsets = to_array(value, "a list of 2 offsets");
  if (offsets.size() != 2) throw JsonFault(text::concat("expected 2 offsets, got ", offsets.size()));
  return {to_size(offsets[0]), to_size(offsets[1])};
}

/// The fields of an entry; empty until read.
struct EntryFields {
  std::optional<const SafetensorsType*> type = {};
  std::optional<std::vector<std::uint64_t>> shape = {};
  std::optional<std::pair<std::uint64_t, std::uint64_t>> offsets = {};

  template <typename Field, typename Convert>
  static void read(std::optional<Field>& field, const char* name, const JsonValue& value, const Convert& convert) {
    if (field) throw JsonFault(text::concat("field '", name, "' appears twice"));
    try {
      field = convert(value);
    } catch (const JsonFault& fault) {
      throw JsonFault(text::concat("field '", name, "': ", fault.what()));
    }
  }
  void read_type(const JsonValue& value) { read(type, "dtype", value, to_type); }
  void read_shape(const JsonValue& value) { read(shape, "shape", value, to_shape); }
  void read_offsets(const JsonValue& value) { read(offsets, "data_offsets", value, to_offsets); }

  SafetensorsEntry entry() && {
    for (const auto& [missing, name] : {std::pair(!type, "dtype"), {!shape, "shape"}, {!offsets, "data_offsets"}}) {
      if (missing) throw JsonFault(text::concat("field '", name, "' is missing"));
    }
    return {.type = *type, .shape = std::move(*shape), .begin = offsets->first, .end = offsets->second};
  }
};

// The safetensors library also accepts a list of the three values without their names.
SafetensorsEntry entry_of(const JsonValue::Array& list) {
  if (list.size() != 3)
    throw JsonFault(text::concat("expected dtype, shape and data_offsets, got ", list.size(), " values"));
  EntryFields fields;
  fields.read_type(list[0]);
  fields.read_shape(list[1]);
  fields.read_offsets(list[2]);
  return std::move(fields).entry();
}

}  // namespace

const SafetensorsType* safetensors_type(at::ScalarType type) {
  const auto* const found = std::ranges::find(types, type, &SafetensorsType::type);
  return found == types.end() || type == none ? nullptr : &*found;
}

SafetensorsEntry safetensors_entry(const JsonValue& value) {
  if (const auto* list = std::get_if<JsonValue::Array>(&value.content)) return entry_of(*list);
  const auto* object = std::get_if<JsonValue::Object>(&value.content);
  if (object == nullptr) value.refuse("an object with dtype, shape and data_offsets");
  EntryFields fields;
  for (const auto& [name, member] : *object) {
    if (name == "dtype") fields.read_type(member);
    if (name == "shape") fields.read_shape(member);
    if (name == "data_offsets") fields.read_offsets(member);
  }
  return std::move(fields).entry();
}

}  // namespace hortator::formats
