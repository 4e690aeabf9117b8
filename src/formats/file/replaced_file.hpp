#pragma once

#include <filesystem>
#include <functional>

#include "formats/file/raw_file.hpp"

namespace hortator::formats {

/// Writes a file under another name by `write`, and renames it to `target` once it is on the disk: readers find the
/// whole new file or what was there before, also after a failure of power. If `write` throws, nothing is left of it.
void replace_file(const std::filesystem::path& target, const std::function<void(const RawFile&)>& write);

}  // namespace hortator::formats
