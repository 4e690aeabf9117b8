#pragma once

#include <functional>
#include <hortator/error.hpp>
#include <string>
#include <utility>

#include "formats/file/file_error.hpp"

namespace hortator::accelerator {

/// What becomes of things that do not fit while a state is loaded: an error; or, without strictness, a line for each,
/// and the rest is loaded. A file that cannot be read is an error in any case.
class LoadPolicy {
 public:
  LoadPolicy(bool strict, std::function<void(const std::string&)> tell) : strict_(strict), tell_(std::move(tell)) {}

  template <typename Work>
  void attempt(const Work& work) const {
    if (strict_) return work();
    try {
      work();
    } catch (const formats::FileError&) {
      throw;
    } catch (const Error& error) {
      tell_(error.what());
    }
  }

 private:
  bool strict_;
  std::function<void(const std::string&)> tell_;
};

}  // namespace hortator::accelerator
