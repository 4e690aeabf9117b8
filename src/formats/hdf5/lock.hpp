#pragma once

#include <hdf5.h>

namespace hortator::formats {

/// Held around every use of HDF5: distributions build it without thread safety, so a process makes one call at a time.
/// While it is held HDF5 prints nothing; its words go into our errors. May be taken again by the thread that holds it.
class Hdf5Lock {
 public:
  Hdf5Lock();
  ~Hdf5Lock();
  Hdf5Lock(const Hdf5Lock&) = delete;
  Hdf5Lock& operator=(const Hdf5Lock&) = delete;

 private:
  // What the application had HDF5 do about errors.
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
  bool silenced_ = false;
};

}  // namespace hortator::formats
