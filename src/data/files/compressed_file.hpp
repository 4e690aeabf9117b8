#pragma once

#include "formats/file/fixed_file.hpp"

namespace hortator::data {

/// Throws FileError with `hint` if gzip or zstd has compressed the file: for data sets that read from any place of it.
void refuse_compressed(const formats::FixedFile& file, const char* hint);

}  // namespace hortator::data
