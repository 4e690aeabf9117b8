#include "data/files/tar_names.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::data {

std::optional<TarName> TarName::divide(const std::string& name) {
  const auto begin = name.rfind('/') + 1;  // 0 without a folder
  const auto point = name.find('.', begin);
  if (point == begin) return {};
  if (point == std::string::npos) {
    throw formats::TarFault(
        text::concat("the member ", text::quote(name), " has no extension, so it is not a part of a sample"));
  }
  auto extension = name.substr(point + 1);
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return TarName{.key = name.substr(0, point), .extension = std::move(extension)};
}

void throw_invalid_tar(const std::filesystem::path& path, const formats::TarFault& fault) {
  throw formats::FileError(
      {.what = text::concat(path, " is not a valid tar shard: ", fault.what()),
       .hint = "copy it again, or write it with tar or webdataset: plain files, those of a sample in sequence"});
}

}  // namespace hortator::data
