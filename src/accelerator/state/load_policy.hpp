#pragma once

#include <functional>
#include <hortator/error.hpp>
#include <string>
#include <utility>

#include "formats/file/file_error.hpp"

namespace hortator::accelerator {

/// Decides what happens if a part of a saved state does not fit: strict, an error; otherwise the problem is reported,
/// the part is skipped and loading continues. A file that cannot be read is always an error.
class LoadPolicy {
 public:
  LoadPolicy(bool strict, std::function<void(const std::string&)> report)
      : strict_(strict), report_(std::move(report)) {}

  /// Calls work(), which loads one part.
  template <typename Work>
  void attempt(const Work& work) const {
    if (strict_) return work();
    try {
      work();
    } catch (const formats::FileError&) {
      throw;
    } catch (const Error& error) {
      report_(error.what());
    }
  }

 private:
  bool strict_;
  std::function<void(const std::string&)> report_;
};

}  // namespace hortator::accelerator
