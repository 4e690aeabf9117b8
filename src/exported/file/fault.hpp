#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace hortator::exported {

/// Why a file is not an exported program that can be run: it is damaged, or uses what is not supported. The
/// function that knows the file turns it into a FileError.
class ExportFault : public std::runtime_error {
 public:
  explicit ExportFault(const std::string& what, std::string hint = "") : runtime_error(what), hint_(std::move(hint)) {}

  const std::string& hint() const { return hint_; }  ///< empty: the file is damaged

 private:
  std::string hint_;
};

}  // namespace hortator::exported
