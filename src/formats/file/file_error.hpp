#pragma once

#include <hortator/error.hpp>

namespace hortator::formats {

/// A file that cannot be read or written, or does not hold what it should.
class FileError : public Error {
 public:
  using Error::Error;
};

}  // namespace hortator::formats
