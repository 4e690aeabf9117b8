#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "formats/compressed/content_reader.hpp"
#include "formats/file/fixed_file.hpp"

namespace hortator::data {

/// The content of a file that may be compressed, from the front to the back. Errors are FileErrors with the file's
/// name.
class ContentFile {
 public:
  explicit ContentFile(const std::filesystem::path& path);
  ContentFile(const ContentFile&) = delete;
  ContentFile& operator=(const ContentFile&) = delete;

  const std::filesystem::path& path() const { return file_.path(); }
  /// Where the next byte is in the content.
  std::uint64_t position() const { return content_.position(); }

  /// Reads that many bytes, or fewer at the end of the content.
  std::size_t read(void* to, std::size_t bytes);
  /// Goes forward to a position. Returns false, at the end, if the content ends before it.
  bool go_to(std::uint64_t position);

 private:
  formats::FixedFile file_;
  formats::ContentReader content_;
};

}  // namespace hortator::data
