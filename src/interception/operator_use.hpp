#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <cstdint>

namespace hortator::interception {

/// What an operator does with the bytes of its arguments, according to its schema.
struct OperatorUse {
  std::size_t arguments = 0;
  std::uint64_t written = 0;  ///< bit i: argument i is changed in place
  /// It only reads shapes (a view), or consists of operators that are intercepted themselves (reshape).
  bool leaves_bytes_alone = false;
  bool casts = false;  ///< autocast, where it is on, casts its fp32 arguments to a 16-bit type before it computes

  bool writes(std::size_t argument) const { return argument < 64 && ((written >> argument) & 1U) != 0; }
};

OperatorUse inspect_operator(const c10::OperatorHandle& op);

/// inspect_operator(), cached for each operator and thread.
const OperatorUse& use_of(const c10::OperatorHandle& op);

}  // namespace hortator::interception
