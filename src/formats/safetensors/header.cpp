#include "formats/safetensors/header.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core/text/text.hpp"
#include "formats/file/utf8.hpp"
#include "formats/safetensors/strict_json.hpp"

namespace hortator::formats {
namespace {

constexpr std::uint64_t max_header_bytes = 100'000'000;

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
      auto entry = safetensors_entry(value);
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

std::uint64_t safetensors_header_bytes(std::span<const std::byte> beginning, std::uint64_t file_bytes) {
  if (beginning.size() < safetensors_length_bytes) throw SafetensorsFault("header too small");
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, beginning.data(), safetensors_length_bytes);
  if (bytes > max_header_bytes) throw SafetensorsFault("header too large");
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

}  // namespace hortator::formats
