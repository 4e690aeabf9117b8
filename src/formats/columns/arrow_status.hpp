#pragma once

#include <arrow/result.h>
#include <arrow/status.h>

#include <exception>
#include <filesystem>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

/// Errors of Arrow's as ours.
namespace hortator::formats {

/// Throws FileError if Arrow reports an error.
inline void require(const arrow::Status& status) {
  if (!status.ok()) throw FileError({.what = status.ToString()});
}

template <typename Value>
Value require(arrow::Result<Value> result) {
  require(result.status());
  return std::move(result).ValueUnsafe();
}

/// Returns what `work` returns. Any exception that is not ours, and FileError without the file's name, becomes one that
/// begins with `place`, such as the file's name.
template <typename Work>
auto reading(const std::string& place, const Work& work) {
  try {
    return work();
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    throw FileError({.what = text::concat(place, ": ", error.what())});
  }
}

}  // namespace hortator::formats
