#pragma once

#include <filesystem>

#include "formats/hdf5/handle.hpp"
#include "formats/hdf5/memory_file.hpp"

namespace hortator::formats {

/// Creates a file in memory. Its metadata is in the format of HDF5 1.8, which every reader has and which protects each
/// metadata block by a checksum, so that damage is detected.
File create_file(MemoryFile& memory);

/// Property lists of new files, shared with parallel files.
PropertyList creation_list();
PropertyList access_list_for_writing();

/// Opens for reading. Files are never locked, since some parallel file systems hang or fail on locks.
File open_file(const std::filesystem::path& path);

}  // namespace hortator::formats
