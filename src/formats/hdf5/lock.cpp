#include "formats/hdf5/lock.hpp"

#include <mutex>

namespace hortator::formats {
namespace {

// HDF5 has one state a process, and so one lock.
std::recursive_mutex& mutex() {
  static std::recursive_mutex instance;
  return instance;
}

}  // namespace

Hdf5Lock::Hdf5Lock() {
  mutex().lock();
  // Fails if the application uses the interface of HDF5 1.6, which cannot be restored; HDF5 keeps printing then.
  silenced_ = H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_) >= 0;
  if (silenced_) H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Lock::~Hdf5Lock() {
  if (silenced_) H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
  mutex().unlock();
}

}  // namespace hortator::formats
