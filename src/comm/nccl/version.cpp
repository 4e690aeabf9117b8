#include "comm/nccl/version.hpp"

#include <dlfcn.h>
#include "comm/nccl/library.hpp"

#include <hortator/error.hpp>

#include "comm/nccl/error.hpp"
#include "core/text/text.hpp"

namespace hortator::comm {
namespace {

constexpr int major(int version) { return version / 10000; }

}  // namespace

NcclLibrary loaded_nccl() {
  NcclLibrary library;
  check_nccl(ncclGetVersion(&library.version), "ncclGetVersion");
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&ncclGetVersion), &info) != 0 && info.dli_fname != nullptr) {
    library.file = info.dli_fname;
  }
  return library;
}

std::string nccl_version_text(int version) {
  return text::concat(major(version), '.', version / 100 % 100, '.', version % 100);
}

void check_nccl_version(int built, const NcclLibrary& loaded) {
  if (major(loaded.version) == major(built) && loaded.version >= built) return;
  throw Error({.what = text::concat("The NCCL that was loaded is ", nccl_version_text(loaded.version), " (",
                                    loaded.file, "), this Hortator was built with ", nccl_version_text(built)),
               .why = "an older NCCL does not have what newer ones promise, another major has other data structures",
               .hint =
                   "take its folder out of LD_LIBRARY_PATH and its module out of the job, so that LibTorch's own is "
                   "found, or build Hortator with it"});
}

}  // namespace hortator::comm
