#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <hortator/export.hpp>
#include <optional>

namespace hortator {

/// Of Accelerator::autocast.
struct AutocastOptions {
  bool enabled = true;        ///< off: as long as the scope lives, nothing is cast, also within another scope
  bool cache_enabled = true;  ///< parameters are cast once, until the outermost scope ends
};

/// As long as it lives, operators that bear it compute in a 16-bit type, on this thread. Scopes nest. What LibTorch
/// remembers is as before when one ends, also by an exception. accelerator.autocast() makes it.
class HORTATOR_API Autocast {
 public:
  /// Nothing happens when no `type` is given.
  [[nodiscard]] Autocast(c10::DeviceType device, std::optional<c10::ScalarType> type,
                         const AutocastOptions& options = {});
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  struct Before {
    bool enabled;
    c10::ScalarType type;
    bool cache_enabled;
  };

  c10::DeviceType device_;
  std::optional<Before> before_;
};

}  // namespace hortator
