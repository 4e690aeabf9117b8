#include "formats/safetensors/header.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "core/text/text.hpp"
#include "formats/safetensors/strict_json.hpp"

namespace hortator::formats {
namespace {

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
