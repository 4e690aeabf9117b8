#pragma once

#include <string>

namespace hortator::comm {

/// An NCCL: its version as NCCL codes it (2.28.9 is 22809) and the file that it lies in.
struct NcclLibrary {
  int version = 0;
  std::string file = {};
};

/// The one in this process, which is not always the one that was linked: LD_LIBRARY_PATH decides, or whoever loads
/// another first.
NcclLibrary loaded_nccl();

std::string nccl_version_text(int version);  ///< "2.28.9"

/// Throws unless `loaded` does what one that was built against `built` expects of it: newer ones do, older ones and
/// other majors do not.
void check_nccl_version(int built, const NcclLibrary& loaded);

}  // namespace hortator::comm
