#include "io/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "base/text.hpp"
#include "io/strict_json.hpp"
#include "io/utf8.hpp"

namespace hortator::io {
namespace {

constexpr std::uint64_t most_header_bytes = 100'000'000;

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

SafetensorsEntry entry_of(const JsonValue& value) {
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

std::map<std::string, std::string> read_metadata(JsonScanner& json) {
  std::map<std::string, std::string> metadata;
  if (json.at_null()) return metadata;
  json.open_object("a map");
  std::string name;
  for (bool first = true; json.next_name(first, name); first = false) {
    json.colon();
    metadata[name] = json.string("a string");
  }
  json.close_object();
  return metadata;
}

/// Reads the header's text. What an entry lacks is told only once all of the text has been read.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : json_(text) {}

  SafetensorsHeader read() {
    json_.open_object("struct HashMetadata");
    std::string name;
    for (bool first = true; json_.next_name(first, name); first = false) {
      name == "__metadata__" ? take_metadata() : take_entry(name);
    }
    json_.close_object();
    if (!fault_.empty()) fail(fault_, faulty_);
    json_.end();
    return std::move(header_);
  }

 private:
  void take_metadata() {
    if (has_metadata_) json_.fail("duplicate field `__metadata__`");
    has_metadata_ = true;
    json_.colon();
    header_.metadata = read_metadata(json_);
  }

  // Of two entries with one name the last one counts.
  void take_entry(const std::string& name) {
    json_.colon();
    const auto value = json_.value();
    if (!fault_.empty()) return;
    try {
      auto entry = entry_of(value);
      entry.name = name;
      const auto [place, is_new] = places_.try_emplace(name, header_.entries.size());
      if (is_new) {
        header_.entries.push_back(std::move(entry));
      } else {
        header_.entries[place->second] = std::move(entry);
      }
    } catch (const JsonFault& fault) {
      fault_ = fault.what();
      faulty_ = name;
    }
  }

  [[noreturn]] void fail(const std::string& fault, const std::string& tensor) const {
    try {
      json_.fail(fault);
    } catch (const JsonFault& placed) {
      throw JsonFault(text::concat(placed.what(), " (tensor `", tensor, "`)"));
    }
  }

  JsonScanner json_;
  SafetensorsHeader header_;
  std::unordered_map<std::string, std::size_t> places_;
  bool has_metadata_ = false;
  std::string fault_;
  std::string faulty_;
};

SafetensorsHeader read_json(std::string_view text) {
  try {
    return HeaderReader(text).read();
  } catch (const JsonFault& fault) {
    throw SafetensorsFault(text::concat("invalid JSON in header: ", fault.what()));
  }
}

void require_utf8(std::string_view text) {
  const auto fault = find_utf8_fault(text);
  if (!fault) return;
  throw SafetensorsFault(text::concat(
      "invalid UTF-8 in header: ",
      fault->bytes == 0 ? "incomplete utf-8 byte sequence from index " : "invalid utf-8 sequence of ",
      fault->bytes == 0 ? text::concat(fault->at) : text::concat(fault->bytes, " bytes from index ", fault->at)));
}

std::uint64_t byte_count(const SafetensorsEntry& entry) {
  std::uint64_t bits = 1;
  bool fits = true;
  for (const auto size : entry.shape) fits = fits && !__builtin_mul_overflow(bits, size, &bits);
  fits = fits && !__builtin_mul_overflow(bits, entry.type->bits, &bits);
  if (!fits) {
    throw SafetensorsFault(
        text::concat("overflow computing buffer size from shape and/or element type (tensor `", entry.name, "`)"));
  }
  if (bits % 8 == 0) return bits / 8;
  throw SafetensorsFault(text::concat(
      "The slice is slicing for subbytes dtypes, and the slice does not end up at a byte boundary, this is "
      "invalid. (tensor `",
      entry.name, "`)"));
}

// Where the last one ends.
std::uint64_t check_entries(const std::vector<SafetensorsEntry>& entries) {
  std::uint64_t end = 0;
  for (const auto& entry : entries) {
    if (entry.begin != end || entry.end < entry.begin)
      throw SafetensorsFault(text::concat("invalid offset for tensor `", entry.name, "`"));
    end = entry.end;
    if (entry.end - entry.begin != byte_count(entry))
      throw SafetensorsFault(text::concat("invalid shape, data type, or offset for tensor `", entry.name, "`"));
  }
  return end;
}

}  // namespace

const SafetensorsType* safetensors_type(at::ScalarType type) {
  const auto* const found = std::ranges::find(types, type, &SafetensorsType::type);
  return found == types.end() || type == none ? nullptr : &*found;
}

std::uint64_t safetensors_header_bytes(std::span<const std::byte> beginning, std::uint64_t file_bytes) {
  if (beginning.size() < safetensors_length_bytes) throw SafetensorsFault("header too small");
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, beginning.data(), safetensors_length_bytes);
  if (bytes > most_header_bytes) throw SafetensorsFault("header too large");
  if (bytes > file_bytes - safetensors_length_bytes) throw SafetensorsFault("invalid header length");
  return bytes;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t file_bytes) {
  require_utf8(text);
  auto header = read_json(text);
  const auto place = [](const SafetensorsEntry& entry) { return std::pair(entry.begin, entry.end); };
  std::ranges::stable_sort(header.entries, {}, place);
  const auto end = check_entries(header.entries);
  header.data_offset = safetensors_length_bytes + text.size();
  if (end != file_bytes - header.data_offset) throw SafetensorsFault("incomplete metadata, file not fully covered");
  return header;
}

}  // namespace hortator::io
