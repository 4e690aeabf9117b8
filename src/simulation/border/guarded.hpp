#pragma once

#include <hortator/hortator.h>

#include <concepts>
#include <string>

namespace hortator::simulation {

/// Stores the text of this thread's last failure, for hortator_last_error(). Never throws.
void store_error(const std::string& text) noexcept;

/// The status of the exception in flight, whose text is stored. Never throws.
hortator_status status_of_exception() noexcept;

/// Runs `work`, which returns a status or throws: no exception passes the border to C.
template <std::invocable Work>
hortator_status guarded(Work&& work) noexcept {
  try {
    return work();
  } catch (...) {
    return status_of_exception();
  }
}

}  // namespace hortator::simulation
