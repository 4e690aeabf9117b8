#include "formats/safetensors/header.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/text/text.hpp"
#include "formats/safetensors/strict_json.hpp"

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

constexpr std::uint64_t max_header_bytes = 100'000'000;

std::map<std::string, std::string> to_metadata(const JsonValue& value) {
  std::map<std::string, std::string> metadata;
  if (std::holds_alternative<std::nullptr_t>(value.content)) return metadata;
  const auto* object = std::get_if<JsonValue::Object>(&value.content);
  if (object == nullptr) value.refuse("an object of strings");
  for (const auto& [name, member] : *object) {
    const auto* text = std::get_if<std::string>(&member.content);
    if (text == nullptr) member.refuse("a string");
    metadata[name] = *text;  // as in the safetensors library, the last of equal names counts
  }
  return metadata;
}

/// Where the metadata or a tensor stands in the messages.
std::string member_name(const std::string& name) {
  return name == safetensors_metadata_name ? text::concat(safetensors_metadata_name) : "tensor " + quoted_json(name);
}

/// Collects the members of the header's object.
class HeaderReader {
 public:
  void take(const std::string& name, const JsonValue& value) {
    name == safetensors_metadata_name ? take_metadata(value) : take_entry(name, value);
  }
  SafetensorsHeader header() && { return std::move(header_); }

 private:
  void take_metadata(const JsonValue& value) {
    if (std::exchange(has_metadata_, true)) throw JsonFault("it appears twice");
    header_.metadata = to_metadata(value);
  }

  // As in the safetensors library, the last of two entries with one name counts.
  void take_entry(const std::string& name, const JsonValue& value) {
    auto entry = safetensors_entry(value);
    entry.name = name;
    const auto [known, is_new] = indices_.try_emplace(name, header_.entries.size());
    if (is_new) {
      header_.entries.push_back(std::move(entry));
    } else {
      header_.entries[known->second] = std::move(entry);
    }
  }

  SafetensorsHeader header_;
  std::unordered_map<std::string, std::size_t> indices_;
  bool has_metadata_ = false;
};

JsonValue::Object parse_object(std::string_view text) {
  try {
    auto root = parse_strict_json(text);
    if (auto* object = std::get_if<JsonValue::Object>(&root.content)) return std::move(*object);
    root.refuse("an object of tensors");
  } catch (const JsonFault& fault) {
    throw SafetensorsFault(text::concat("invalid JSON in the header: ", fault.what()));
  }
}

SafetensorsHeader read_json(std::string_view text) {
  HeaderReader reader;
  for (const auto& [name, value] : parse_object(text)) {
    try {
      reader.take(name, value);
    } catch (const JsonFault& fault) {
      throw SafetensorsFault(text::concat("invalid header entry of ", member_name(name), ": ", fault.what()));
    }
  }
  return std::move(reader).header();
}

std::uint64_t byte_count(const SafetensorsEntry& entry) {
  std::uint64_t bits = 1;
  bool fits = true;
  for (const auto size : entry.shape) fits = fits && !__builtin_mul_overflow(bits, size, &bits);
  fits = fits && !__builtin_mul_overflow(bits, entry.type->bits, &bits);
  const auto fail = [&](const char* fault) {
    throw SafetensorsFault(text::concat(member_name(entry.name), ": the shape [", text::join(entry.shape), "] of ",
                                        entry.type->name, " ", fault));
  };
  if (!fits) fail("has a size beyond 64 bits");
  if (bits % 8 != 0) fail("does not end at a whole byte");
  return bits / 8;
}

/// Throws unless each entry begins where the one before ends and its bytes fit its shape. Returns the end of the last.
std::uint64_t check_entries(const std::vector<SafetensorsEntry>& entries) {
  std::uint64_t end = 0;
  for (const auto& entry : entries) {
    if (entry.begin != end || entry.end < entry.begin) {
      throw SafetensorsFault(text::concat("invalid offsets of ", member_name(entry.name), ": [", entry.begin, ", ",
                                          entry.end, "), expected to begin at ", end));
    }
    end = entry.end;
    if (const auto bytes = byte_count(entry); entry.end - entry.begin != bytes) {
      throw SafetensorsFault(text::concat(member_name(entry.name), ": ", entry.type->name, " [",
                                          text::join(entry.shape), "] has ", bytes, " bytes, its offsets span ",
                                          entry.end - entry.begin));
    }
  }
  return end;
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

std::uint64_t safetensors_header_bytes(std::span<const std::byte> beginning, std::uint64_t file_bytes) {
  if (beginning.size() < safetensors_length_bytes) {
    throw SafetensorsFault(text::concat("it has ", file_bytes, " bytes, expected at least ", safetensors_length_bytes));
  }
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, beginning.data(), safetensors_length_bytes);
  if (bytes > max_header_bytes) {
    throw SafetensorsFault(
        text::concat("the header's length is ", bytes, " bytes, expected at most ", max_header_bytes));
  }
  if (bytes > file_bytes - safetensors_length_bytes) {
    throw SafetensorsFault(text::concat("the header's length is ", bytes, " bytes, but only ",
                                        file_bytes - safetensors_length_bytes, " bytes follow"));
  }
  return bytes;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t file_bytes) {
  auto header = read_json(text);
  const auto offsets = [](const SafetensorsEntry& entry) { return std::pair(entry.begin, entry.end); };
  std::ranges::stable_sort(header.entries, {}, offsets);
  const auto end = check_entries(header.entries);
  header.data_offset = safetensors_length_bytes + text.size();
  const auto data_bytes = file_bytes - header.data_offset;
  if (end != data_bytes) {
    throw SafetensorsFault(
        text::concat("the tensors have ", end, " bytes, but ", data_bytes, " bytes follow the header"));
  }
  return header;
}

}  // namespace hortator::formats
