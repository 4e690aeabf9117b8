#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <hortator/export.hpp>
#include <optional>

namespace hortator {

/// Options of Accelerator::autocast().
struct AutocastOptions {
  bool enabled = true;        ///< off: nothing is cast while the scope lives, even within another scope
  bool cache_enabled = true;  ///< casts each parameter once, until the outermost scope ends
};

/// While it lives, operators of this thread that support autocast compute in a 16-bit type. Scopes nest. Its end, also
/// by an exception, restores LibTorch's settings. Create it by accelerator.autocast().
class HORTATOR_API Autocast {
 public:
  /// Does nothing without a `type`.
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
