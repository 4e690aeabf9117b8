#include "formats/tar/members.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/text/text.hpp"
#include "formats/tar/header.hpp"

namespace hortator::formats {
namespace {

constexpr std::uint64_t max_extension_bytes = std::uint64_t{1} << 20;
/// Positions up to here can be added without overflow.
constexpr std::uint64_t max_archive_bytes = std::uint64_t{1} << 62;

std::uint64_t whole_blocks(std::uint64_t bytes) {
  return (bytes + tar_block_bytes - 1) / tar_block_bytes * tar_block_bytes;
}

bool is_regular(char type) { return type == '0' || type == '\0' || type == '7'; }
bool is_extension(char type) { return type == 'x' || type == 'g' || type == 'L' || type == 'K'; }

[[noreturn]] void refuse_type(const std::string& name, char type) {
  const auto* kind = type == '1' || type == '2' ? "is a link" : type == 'S' ? "is sparse" : "is not a regular file";
  throw TarFault(text::concat("the member ", text::quote(name), " ", kind, ": archives of plain files can be read"));
}

/// A header for all members that follow: remarks, but neither names nor sizes.
void require_no_sizes(const std::string& content) {
  const auto records = parse_pax_records(content);
  if (records.contains("path") || records.contains("size"))
    throw TarFault("a global pax header has a path or a size, which cannot be read");
}

}  // namespace

TarMembers::TarMembers(FileBytes read, std::optional<std::uint64_t> archive_bytes, std::uint64_t position)
    : read_(std::move(read)), archive_bytes_(archive_bytes), position_(position) {}

std::optional<TarMember> TarMembers::next() {
  Extension extension;
  while (true) {
    const auto header = read_header();
    if (header.is_zero()) {
      require_zeros_to_end();
      return {};
    }
    if (!header.has_right_sum())
      throw TarFault(text::concat("the header at byte ", position_, " has another checksum: the archive is damaged"));
    if (is_extension(header.type())) {
      extend(header, extension);
      continue;
    }
    TarMember member{.name = extension.name.value_or(header.name()),
                     .offset = position_ + tar_block_bytes,
                     .bytes = extension.bytes.value_or(header.bytes())};
    const bool is_folder =
        header.type() == '5' || (is_regular(header.type()) && member.bytes == 0 && member.name.ends_with('/'));
    if (!is_folder && !is_regular(header.type())) refuse_type(member.name, header.type());
    skip(is_folder ? 0 : member.bytes, member.name);
    if (!is_folder) return member;
    extension = {};
  }
}

TarHeader TarMembers::read_header() const {
  if (position_ > end() || end() - position_ < tar_block_bytes)
    throw TarFault(text::concat("it ends at byte ", end(), " without the mark of its end: it is truncated"));
  TarHeader::Block block{};
  read_(position_, block.data(), block.size());
  return TarHeader(block);
}

void TarMembers::extend(const TarHeader& header, Extension& extension) {
  const auto text = content(header);
  if (header.type() == 'L') extension.name = text.substr(0, text.find('\0'));
  if (header.type() == 'x') extend_as_pax(text, extension);
  if (header.type() == 'g') require_no_sizes(text);
  skip(header.bytes(), header.name());
}

void TarMembers::extend_as_pax(const std::string& content, Extension& extension) {
  for (const auto& [key, value] : parse_pax_records(content)) {
    if (key == "path") extension.name = value;
    if (key.starts_with("GNU.sparse")) refuse_type(extension.name.value_or(""), 'S');
    if (key != "size") continue;
    long long bytes = 0;
    if (!text::parse_integer(value, bytes) || bytes < 0) throw TarFault("a pax header has a size that is not valid");
    extension.bytes = static_cast<std::uint64_t>(bytes);
  }
}

std::string TarMembers::content(const TarHeader& header) const {
  const auto bytes = header.bytes();
  const auto begin = position_ + tar_block_bytes;
  if (bytes > max_extension_bytes) throw TarFault(text::concat("a header is extended by ", bytes, " bytes"));
  if (bytes > end() - begin) throw TarFault("it ends within a header: it is truncated");
  std::string text(bytes, '\0');
  read_(begin, text.data(), text.size());
  return text;
}

void TarMembers::skip(std::uint64_t bytes, const std::string& name) {
  const auto begin = position_ + tar_block_bytes;
  const auto left = end() - begin;
  if (bytes > left || whole_blocks(bytes) > left) {
    throw TarFault(text::concat("it ends within the member ", text::quote(name), ", which has ", bytes,
                                " bytes: it is truncated"));
  }
  position_ = begin + whole_blocks(bytes);
}

std::uint64_t TarMembers::end() const { return archive_bytes_.value_or(max_archive_bytes); }

void TarMembers::require_zeros_to_end() const {
  if (!archive_bytes_) return;
  std::array<char, 16 * tar_block_bytes> some{};
  for (auto at = position_; at < *archive_bytes_;) {
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(some.size(), *archive_bytes_ - at));
    read_(at, some.data(), bytes);
    if (std::any_of(some.begin(), some.begin() + static_cast<std::ptrdiff_t>(bytes), [](char c) { return c != 0; }))
      throw TarFault("more follows behind the mark of its end: archives that were joined have to be separate files");
    at += bytes;
  }
}

std::map<std::string, std::string> parse_pax_records(std::string_view text) {
  std::map<std::string, std::string> records;
  while (!text.empty()) {
    std::size_t length = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(parsed.ptr - text.data());
    const bool fits = parsed.ec == std::errc() && length <= text.size() && length > digits + 1 && text[digits] == ' ' &&
                      text[length - 1] == '\n';
    const auto record = fits ? text.substr(digits + 1, length - digits - 2) : std::string_view();
    const auto equals = record.find('=');
    if (equals == std::string_view::npos) throw TarFault("a pax header has a record that is not valid");
    records[std::string(record.substr(0, equals))] = record.substr(equals + 1);
    text.remove_prefix(length);
  }
  return records;
}

}  // namespace hortator::formats
