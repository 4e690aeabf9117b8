#pragma once

#include <hdf5.h>

namespace hortator::formats {

/// Must be held around every use of HDF5, which distributions build without thread safety. While it is held, HDF5
/// prints nothing; its messages go into our errors. Recursive.
class Hdf5Lock {
 public:
  Hdf5Lock();
  ~Hdf5Lock();
  Hdf5Lock(const Hdf5Lock&) = delete;
  Hdf5Lock& operator=(const Hdf5Lock&) = delete;

 private:
  // The application's error handler, restored at the end.
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
  bool silenced_ = false;
};

}  // namespace hortator::formats
