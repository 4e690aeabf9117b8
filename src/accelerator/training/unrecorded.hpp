#pragma once

#include <ATen/record_function.h>

#include <optional>

namespace hortator::accelerator {

/// Keeps operators that other meshes do not need out of the record of a step while it lives, if there is a record.
class Unrecorded {
 public:
  explicit Unrecorded(bool is_recording) {
    if (is_recording) guard_.emplace();
  }

 private:
  std::optional<at::DisableRecordFunctionGuard> guard_;
};

}  // namespace hortator::accelerator
