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
    SafetensorsType{"F4", 4, at::ScalarType::Float4_e2m1fn_x2},  // two of them are one element of a tensor
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
  std::vector<std::string> known;
  for (const auto& type : types) known.push_back(text::concat("`", type.name, "`"));
  throw JsonFault(text::concat("unknown variant `", name, "`, expected one of ", text::join(known)));
}

// A name, or, as the reference's library for such values has it, an object {name: null}.
const SafetensorsType* to_type(const JsonValue& value) {
  if (const auto* name = std::get_if<std::string>(&value.content)) return type_named(*name);
  const auto* object = std::get_if<JsonValue::Object>(&value.content);
  if (object == nullptr) value.refuse("string or map");
  if (object->size() != 1) throw JsonFault("invalid value: map, expected map with a single key");
  const auto* type = type_named(object->front().first);
  const auto& unit = object->front().second;
  if (!std::holds_alternative<std::nullptr_t>(unit.content)) unit.refuse("unit");
  return type;
}

std::uint64_t to_size(const JsonValue& value) {
  if (const auto* size = std::get_if<std::uint64_t>(&value.content)) return *size;
  if (std::holds_alternative<std::int64_t>(value.content))
    throw JsonFault(text::concat("invalid value: ", value.described(), ", expected usize"));
  value.refuse("usize");
}

const JsonValue::Array& to_array(const JsonValue& value, std::string_view expected) {
  if (const auto* array = std::get_if<JsonValue::Array>(&value.content)) return *array;
  value.refuse(expected);
}

std::vector<std::uint64_t> to_shape(const JsonValue& value) {
  std::vector<std::uint64_t> shape;
  for (const auto& size : to_array(value, "a sequence")) shape.push_back(to_size(size));
  return shape;
}

std::pair<std::uint64_t, std::uint64_t> to_offsets(const JsonValue& value) {
  constexpr auto expected = "a tuple of size 2";
  const auto& offsets = to_array(value, expected);
  std::array<std::uint64_t, 2> pair{};
  for (std::size_t i = 0; i < pair.size(); ++i) {
    if (i == offsets.size()) throw JsonFault(text::concat("invalid length ", i, ", expected ", expected));
    pair.at(i) = to_size(offsets[i]);
  }
  if (offsets.size() > pair.size())
    throw JsonFault(text::concat("invalid length ", offsets.size(), ", expected 2 elements in sequence"));
  return {pair[0], pair[1]};
}

/// The parts of an entry, as they come.
struct EntryParts {
  std::optional<const SafetensorsType*> type = {};
  std::optional<std::vector<std::uint64_t>> shape = {};
  std::optional<std::pair<std::uint64_t, std::uint64_t>> offsets = {};

  template <typename Part, typename Convert>
  static void take(std::optional<Part>& part, const char* name, const JsonValue& value, const Convert& convert) {
    if (part) throw JsonFault(text::concat("duplicate field `", name, "`"));
    part = convert(value);
  }
  SafetensorsEntry entry() && {
    for (const auto& [missing, name] : {std::pair(!type, "dtype"), {!shape, "shape"}, {!offsets, "data_offsets"}}) {
      if (missing) throw JsonFault(text::concat("missing field `", name, "`"));
    }
    return {.type = *type, .shape = std::move(*shape), .begin = offsets->first, .end = offsets->second};
  }
};

// The reference takes a list of the three in place of names.
SafetensorsEntry entry_of(const JsonValue::Array& list) {
  constexpr std::size_t parts = 3;
  const auto part = [&](std::size_t i) -> const JsonValue& {
    if (i < list.size()) return list[i];
    throw JsonFault(text::concat("invalid length ", i, ", expected struct TensorInfo with 3 elements"));
  };
  EntryParts entry;
  entry.type = to_type(part(0));
  entry.shape = to_shape(part(1));
  entry.offsets = to_offsets(part(2));
  if (list.size() > parts)
    throw JsonFault(text::concat("invalid length ", list.size(), ", expected 3 elements in sequence"));
  return std::move(entry).entry();
}

}  // namespace

const SafetensorsType* safetensors_type(at::ScalarType type) {
  const auto* const found = std::ranges::find(types, type, &SafetensorsType::type);
  return found == types.end() || type == none ? nullptr : &*found;
}

SafetensorsEntry safetensors_entry(const JsonValue& value) {
  if (const auto* list = std::get_if<JsonValue::Array>(&value.content)) return entry_of(*list);
  const auto* object = std::get_if<JsonValue::Object>(&value.content);
  if (object == nullptr) value.refuse("struct TensorInfo");
  EntryParts parts;
  for (const auto& [name, part] : *object) {
    if (name == "dtype") EntryParts::take(parts.type, "dtype", part, to_type);
    if (name == "shape") EntryParts::take(parts.shape, "shape", part, to_shape);
    if (name == "data_offsets") EntryParts::take(parts.offsets, "data_offsets", part, to_offsets);
  }
  return std::move(parts).entry();
}

}  // namespace hortator::formats
