#include "formats/gguf/file.hpp"

#include <vector>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::formats {

void throw_invalid_gguf(const std::filesystem::path& path, const GgufFault& fault) {
  throw FileError({.what = text::concat(path, " is not a valid GGUF file: ", fault.what()),
                   .hint = "it is truncated, damaged, or of another format: write or copy it again"});
}

GgufHeader read_gguf_header(const FixedFile& file, const GgufLists& kept) {
  try {
    auto header =
        parse_gguf_header([&](std::uint64_t offset, void* to, std::size_t bytes) { file.read_at(offset, to, bytes); },
                          file.bytes(), kept);
    file.require_unchanged();
    return header;
  } catch (const GgufFault& fault) {
    throw_invalid_gguf(file.path(), fault);
  }
}

std::filesystem::path gguf_file_at(const std::filesystem::path& path) {
  if (path.extension() == ".gguf" && std::filesystem::is_regular_file(path)) return path;
  if (!std::filesystem::is_directory(path)) return {};
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().extension() == ".gguf") found.push_back(entry.path());
  return found.size() == 1 ? found.front() : std::filesystem::path();
}

}  // namespace hortator::formats
