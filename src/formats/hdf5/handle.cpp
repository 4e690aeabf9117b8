#include "formats/hdf5/handle.hpp"

#include <hdf5.h>

#include <mutex>

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

// The first record of an upward walk is the innermost, the cause. Called by C code, so it must not throw.
herr_t keep_innermost(unsigned depth, const H5E_error2_t* record, void* kept) noexcept {
  if (depth == 0) *static_cast<const char**>(kept) = record->desc;
  return 0;
}

// HDF5 has one state a process, and so one lock.
std::recursive_mutex& mutex() {
  static std::recursive_mutex instance;
  return instance;
}

}  // namespace

void throw_hdf5_error(std::string_view task, std::source_location where) {
  const char* message = nullptr;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &message);
  throw FileError({.what = text::concat("Cannot ", task, ": ", message != nullptr ? message : "HDF5 gives no reason")},
                  where);
}

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
