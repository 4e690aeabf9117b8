#pragma once

#include <hortator/error.hpp>

namespace hortator::formats {

/// A file cannot be read or written, or its contents are not what they should be.
class FileError : public Error {
 public:
  using Error::Error;
};

}  // namespace hortator::formats
