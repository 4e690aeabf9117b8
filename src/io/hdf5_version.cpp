#include "io/hdf5_version.hpp"

#include <hdf5.h>

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

}  // namespace hortator::io
