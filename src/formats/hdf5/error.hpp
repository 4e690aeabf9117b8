#pragma once

#include <concepts>
#include <source_location>
#include <string_view>

#include "formats/file/file_error.hpp"

namespace hortator::formats {

/// Throws FileError "Cannot <task>: <message of HDF5>". The caller must hold Hdf5Lock, else the message may be another
/// thread's.
[[noreturn]] void throw_hdf5_error(std::string_view task, std::source_location where);

/// Throws if `result` is negative, as HDF5 reports failure; else returns it.
template <std::signed_integral T>
T check(T result, std::string_view task, std::source_location where = std::source_location::current()) {
  if (result < 0) throw_hdf5_error(task, where);
  return result;
}

}  // namespace hortator::formats
