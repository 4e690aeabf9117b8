#include "formats/hdf5/error.hpp"

#include <hdf5.h>

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

// The first record that the walk meets is the innermost: what really happened. C calls this, so nothing may be thrown.
herr_t keep_innermost(unsigned depth, const H5E_error2_t* record, void* kept) noexcept {
  if (depth == 0) *static_cast<const char**>(kept) = record->desc;
  return 0;
}

}  // namespace

void throw_hdf5_error(std::string_view task, std::source_location where) {
  const char* words = nullptr;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &words);
  throw FileError({.what = text::concat("cannot ", task, ": ", words != nullptr ? words : "HDF5 gives no reason")},
                  where);
}

}  // namespace hortator::formats
