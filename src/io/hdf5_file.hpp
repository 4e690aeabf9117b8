#pragma once

#include <filesystem>

#include "io/hdf5_handle.hpp"
#include "io/memory_file.hpp"

namespace hortator::io {

/// A new file in memory. Its structure (everything but the tensors' bytes) is in the format of HDF5 1.8: every reader
/// has it, and each piece of it carries a checksum, so that damage is found and not interpreted.
File create_file(MemoryFile& memory);

/// For reading. Files are never locked: some parallel file systems hang or fail when asked to.
File open_file(const std::filesystem::path& path);

}  // namespace hortator::io
