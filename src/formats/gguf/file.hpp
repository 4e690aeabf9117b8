#pragma once

#include <filesystem>

#include "formats/file/fixed_file.hpp"
#include "formats/gguf/header.hpp"

namespace hortator::formats {

/// Reads and checks the beginning of a GGUF file, with the values of the named lists. Throws FileError.
GgufHeader read_gguf_header(const FixedFile& file, const GgufLists& kept = {});

/// The GGUF file that a path means: the file itself, or the only one in a folder; empty if there is none or several.
std::filesystem::path gguf_file_at(const std::filesystem::path& path);

[[noreturn]] void throw_invalid_gguf(const std::filesystem::path& path, const GgufFault& fault);

}  // namespace hortator::formats
