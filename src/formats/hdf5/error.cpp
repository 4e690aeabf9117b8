#include "formats/hdf5/error.hpp"

#include <hdf5.h>

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

// The first record of an upward walk is the innermost, the cause. Called by C code, so it must not throw.
herr_t keep_innermost(unsigned depth, const H5E_error2_t* record, void* kept) noexcept {
  if (depth == 0) *static_cast<const char**>(kept) = record->desc;
  return 0;
}

}  // namespace

void throw_hdf5_error(std::string_view task, std::source_location where) {
  const char* message = nullptr;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &message);
  throw FileError({.what = text::concat("Cannot ", task, ": ", message != nullptr ? message : "HDF5 gives no reason")},
                  where);
}

}  // namespace hortator::formats
