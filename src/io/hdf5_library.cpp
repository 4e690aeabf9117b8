#include "io/hdf5_version.hpp"

#include <hdf5.h>

#include <hortator/error.hpp>

#include "base/text.hpp"
#include "io/hdf5_lock.hpp"

namespace hortator::io {

std::string hdf5_version() {
  const Hdf5Lock lock;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return text::concat("HDF5 ", major, '.', minor, '.', release);
}

std::string built_hdf5_version() {
  return text::concat("HDF5 ", H5_VERS_MAJOR, '.', H5_VERS_MINOR, '.', H5_VERS_RELEASE);
}

void check_hdf5_version(std::string_view built, std::string_view loaded) {
  const auto minor_release = [](std::string_view version) { return version.substr(0, version.rfind('.')); };
  if (minor_release(built) == minor_release(loaded)) return;
  throw Error({.what = text::concat("the HDF5 that was loaded is ", loaded, ", this Hortator was built with ", built),
               .why = "their data structures differ",
               .hint = "load the HDF5 module that Hortator was built with, and no other, and build programs with it"});
}

}  // namespace hortator::io
