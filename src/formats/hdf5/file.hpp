#pragma once

#include <filesystem>

#include "formats/hdf5/handle.hpp"
#include "formats/hdf5/memory_file.hpp"

namespace hortator::formats {

/// A new file in memory. Its structure (everything but the tensors' bytes) is in the format of HDF5 1.8: every reader
/// has it, and each piece of it carries a checksum, so that damage is found and not interpreted.
File create_file(MemoryFile& memory);

/// Of new files: how they are made, and by what. Shared with those that several ranks make together.
PropertyList creation_list();
PropertyList access_list_for_writing();

/// For reading. Files are never locked: some parallel file systems hang or fail when asked to.
File open_file(const std::filesystem::path& path);

}  // namespace hortator::formats
