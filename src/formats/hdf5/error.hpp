#pragma once

#include <concepts>
#include <source_location>
#include <string_view>

#include "formats/file/file_error.hpp"

namespace hortator::formats {

/// Throws "cannot <task>: <HDF5's own words>". The caller holds Hdf5Lock, or the words are another thread's.
[[noreturn]] void throw_hdf5_error(std::string_view task, std::source_location where);

/// HDF5 says failure by a negative number: hands on any other.
template <std::signed_integral T>
T check(T result, std::string_view task, std::source_location where = std::source_location::current()) {
  if (result < 0) throw_hdf5_error(task, where);
  return result;
}

}  // namespace hortator::formats
