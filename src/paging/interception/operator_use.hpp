#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <cstdint>

namespace hortator::paging {

/// What an operator does with the bytes of its arguments, by its schema.
struct OperatorUse {
  std::size_t arguments = 0;
  std::uint64_t written = 0;  ///< bit i: argument i is changed in place
  /// It looks at shapes alone (a view), or is made of operators that come by themselves (reshape).
  bool leaves_bytes_alone = false;

  bool writes(std::size_t argument) const { return argument < 64 && ((written >> argument) & 1U) != 0; }
};

OperatorUse inspect_operator(const c10::OperatorHandle& op);

/// The same, looked up: once an operator and thread.
const OperatorUse& use_of(const c10::OperatorHandle& op);

}  // namespace hortator::paging
