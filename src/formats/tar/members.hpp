#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "formats/file/file_bytes.hpp"
#include "formats/tar/header.hpp"

/// The files in a tar archive: ustar, with the long names and sizes of GNU tar and of pax.
namespace hortator::formats {

/// A regular file in an archive.
struct TarMember {
  std::string name = {};
  std::uint64_t offset = 0;  ///< of its first byte, in the archive
  std::uint64_t bytes = 0;
};

/// Walks through the regular files of an archive in their order; folders are skipped. Reads only headers, into a
/// limited amount of memory. Throws TarFault for links, devices and sparse files, for a header that is damaged, and for
/// an archive that is truncated or followed by another one.
class TarMembers {
 public:
  /// Begins at `position`, where an earlier walk has been. An archive that is read front to back has no known size:
  /// then `read` throws where it ends, and the caller checks that only zeros follow the last file.
  TarMembers(FileBytes read, std::optional<std::uint64_t> archive_bytes, std::uint64_t position = 0);

  /// The next file; nothing at the end.
  std::optional<TarMember> next();
  /// Where the headers of the next file begin.
  std::uint64_t position() const { return position_; }

 private:
  /// What precedes a member's header, because it does not fit into it.
  struct Extension {
    std::optional<std::string> name = {};
    std::optional<std::uint64_t> bytes = {};
  };
  TarHeader read_header() const;
  void extend(const TarHeader& header, Extension& extension);
  void extend_as_pax(const std::string& content, Extension& extension);
  std::string content(const TarHeader& header) const;
  void skip(std::uint64_t bytes, const std::string& name);
  std::uint64_t end() const;
  void require_zeros_to_end() const;

  FileBytes read_;
  std::optional<std::uint64_t> archive_bytes_;
  std::uint64_t position_;
};

/// The records of a pax header, "<length> <key>=<value>\n" one after the other. Throws TarFault. Pure.
std::map<std::string, std::string> parse_pax_records(std::string_view text);

}  // namespace hortator::formats
