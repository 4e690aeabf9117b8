#include "formats/torch/zip/records.hpp"

#include <algorithm>

#include "core/text/text.hpp"
#include "formats/torch/zip/format.hpp"

namespace hortator::formats {
namespace {

constexpr std::uint64_t max_directory_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t max_comment_bytes = 0xffff;

/// Size and position of the directory.
struct ZipDirectory {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
};

/// An entry of the directory.
struct ZipEntry {
  std::string name = {};
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint64_t packed_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t header = 0;  ///< offset of its local header
};

std::string read_zip(const ByteSource& archive, std::uint64_t offset, std::uint64_t bytes) {
  if (offset > archive.bytes || bytes > archive.bytes - offset)
    throw ZipFault(text::concat("it ends at byte ", archive.bytes, ", within data expected at ", offset));
  std::string data(bytes, '\0');
  archive.read_at(offset, data.data(), data.size());
  return data;
}

/// Returns the offset of the end-of-directory record. Only a comment may follow it.
std::uint64_t find_end(const ByteSource& archive) {
  using namespace zip;
  const auto tail_bytes = std::min<std::uint64_t>(archive.bytes, directory_end_bytes + max_comment_bytes);
  const auto tail = read_zip(archive, archive.bytes - tail_bytes, tail_bytes);
  for (auto at = static_cast<std::int64_t>(tail.size()) - static_cast<std::int64_t>(directory_end_bytes); at >= 0;
       --at) {
    Cursor end(std::string_view(tail).substr(static_cast<std::size_t>(at)));
    if (end.u32() != directory_end) continue;
    end.skip(directory_end_bytes - 6);
    if (const std::size_t comment = end.u16(); comment == end.left())
      return archive.bytes - tail_bytes + static_cast<std::uint64_t>(at);
  }
  throw ZipFault("its directory is missing: it is truncated or not a zip archive");
}

ZipDirectory directory_of_64_bits(const ByteSource& archive, std::uint64_t end) {
  using namespace zip;
  const auto locator = read_zip(archive, end - directory_locator_64_bytes, directory_locator_64_bytes);
  Cursor position(locator);
  position.skip(8);
  const auto record = read_zip(archive, position.u64(), directory_end_64_bytes);
  Cursor fields(record);
  if (fields.u32() != directory_end_64) throw ZipFault("the position of its directory is damaged");
  fields.skip(28);
  const auto records = fields.u64();
  const auto bytes = fields.u64();
  return {.records = records, .bytes = bytes, .offset = fields.u64()};
}

bool has_locator(const ByteSource& archive, std::uint64_t end) {
  using namespace zip;
  if (end < directory_locator_64_bytes) return false;
  const auto locator = read_zip(archive, end - directory_locator_64_bytes, directory_locator_64_bytes);
  return Cursor(locator).u32() == directory_locator_64;
}

ZipDirectory find_directory(const ByteSource& archive) {
  using namespace zip;
  const auto end = find_end(archive);
  ZipDirectory found;
  if (has_locator(archive, end)) {
    found = directory_of_64_bits(archive, end);
  } else {
    const auto record = read_zip(archive, end, directory_end_bytes);
    Cursor fields(record);
    fields.skip(10);
    found.records = fields.u16();
    found.bytes = fields.u32();
    found.offset = fields.u32();
  }
  if (found.offset > end || found.bytes > end - found.offset || found.bytes > max_directory_bytes ||
      found.records > found.bytes / directory_entry_bytes)
    throw ZipFault("its directory does not lie within it");
  return found;
}

/// Reads the numbers that do not fit 32 bits from the extra fields, in the order of the specification.
void widen(ZipEntry& entry, std::string_view extra) {
  zip::Cursor fields(extra);
  while (fields.left() >= 4) {
    const auto tag = fields.u16();
    const std::size_t bytes = fields.u16();
    if (bytes > fields.left()) break;
    zip::Cursor field(fields.bytes(bytes));
    if (tag != zip::sizes_of_64_bits) continue;
    for (auto* number : {&entry.bytes, &entry.packed_bytes, &entry.header}) {
      if (*number != zip::in_64_bits) continue;
      if (field.left() < 8)
        throw ZipFault(text::concat("the sizes of its record ", text::quote(entry.name), " are missing"));
      *number = field.u64();
    }
    return;
  }
}

ZipEntry take_entry(zip::Cursor& directory) {
  const auto require = [&](std::size_t bytes) {
    if (directory.left() < bytes) throw ZipFault("its directory ends within an entry");
  };
  require(zip::directory_entry_bytes);
  if (directory.u32() != zip::directory_entry) throw ZipFault("its directory is damaged");
  directory.skip(4);
  ZipEntry entry{.flags = directory.u16(), .method = directory.u16()};
  directory.skip(8);
  entry.packed_bytes = directory.u32();
  entry.bytes = directory.u32();
  const std::size_t name = directory.u16();
  const std::size_t extra = directory.u16();
  const std::size_t comment = directory.u16();
  directory.skip(8);
  entry.header = directory.u32();
  require(name + extra + comment);
  entry.name = directory.bytes(name);
  widen(entry, directory.bytes(extra));
  directory.skip(comment);
  return entry;
}

ZipRecord record_of(const ZipEntry& entry, const ByteSource& archive, const ZipDirectory& directory) {
  const auto fail = [&](std::string_view why) {
    throw ZipFault(text::concat("its record ", text::quote(entry.name), " ", why));
  };
  if (entry.header > directory.offset || directory.offset - entry.header < zip::local_header_bytes)
    fail("does not lie before the directory");
  const auto header = read_zip(archive, entry.header, zip::local_header_bytes);
  zip::Cursor local(header);
  if (local.u32() != zip::local_header) fail("has no header");
  local.skip(22);
  const std::uint64_t name = local.u16();
  const auto offset = entry.header + zip::local_header_bytes + name + local.u16();
  if (name != entry.name.size() || read_zip(archive, entry.header + zip::local_header_bytes, name) != entry.name)
    fail("has another name in its header");
  if (offset > directory.offset || entry.packed_bytes > directory.offset - offset) fail("reaches into the directory");
  const bool is_plain = (entry.flags & 1) == 0 && entry.method == 0 && entry.packed_bytes == entry.bytes;
  return {.offset = offset, .bytes = entry.packed_bytes, .is_plain = is_plain};
}

}  // namespace

ZipRecords::ZipRecords(const ByteSource& archive) {
  const auto directory = find_directory(archive);
  const auto all = read_zip(archive, directory.offset, directory.bytes);
  zip::Cursor entries(all);
  for (std::uint64_t i = 0; i < directory.records; ++i) {
    const auto entry = take_entry(entries);
    if (!records_.emplace(entry.name, record_of(entry, archive, directory)).second)
      throw ZipFault(text::concat("its record ", text::quote(entry.name), " appears twice"));
    names_.push_back(entry.name);
  }
}

const ZipRecord* ZipRecords::find(const std::string& name) const {
  const auto found = records_.find(name);
  if (found == records_.end()) return nullptr;
  if (!found->second.is_plain) throw ZipFault(text::concat("its record ", text::quote(name), " is compressed"));
  return &found->second;
}

}  // namespace hortator::formats
