#pragma once

#include <string>

namespace hortator::comm {

/// An NCCL library: its version as NCCL encodes it (2.28.9 is 22809) and its file.
struct NcclLibrary {
  int version = 0;
  std::string file = {};
};

/// The NCCL loaded in this process. It may differ from the one that was linked: LD_LIBRARY_PATH decides, or another
/// library that loads NCCL first.
NcclLibrary loaded_nccl();

std::string nccl_version_text(int version);  ///< "2.28.9"

/// Throws unless `loaded` can be used by a program built against `built`: it must have the same major version and must
/// not be older.
void check_nccl_version(int built, const NcclLibrary& loaded);

}  // namespace hortator::comm
