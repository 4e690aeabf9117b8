#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "formats/tar/members.hpp"

namespace hortator::data {

/// The two parts of the name of a file in a WebDataset's archive.
struct TarName {
  std::string key;        ///< the same for the files of a sample
  std::string extension;  ///< in lower case

  /// Nothing for a hidden file. Throws TarFault for a name without an extension.
  static std::optional<TarName> divide(const std::string& name);
};

/// Throws FileError for an archive in which `fault` was found.
[[noreturn]] void throw_invalid_tar(const std::filesystem::path& path, const formats::TarFault& fault);

}  // namespace hortator::data
