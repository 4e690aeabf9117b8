#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <string>
#include <vector>

namespace hortator::machine {

/// What an operator does with the memory of its tensors, by its schema and its kernels.
struct OperatorMemory {
  std::string name = {};
  std::vector<char> writes = {};  ///< whether an argument is written
  std::vector<char> is_new = {};  ///< whether a result differs from all arguments
  bool is_copy = false;           ///< between devices as well
  bool only_allocates = false;
  bool keeps_for_stream = false;  ///< aten::record_stream
  bool waits = false;             ///< the host waits for the result
  bool waits_for_masks = false;   ///< it waits if an argument is a mask, which selects by data
  /// It reads and writes. Otherwise it only looks at shapes, or consists of operators that are seen themselves.
  bool touches_device = false;
  bool touches_host = false;
};

OperatorMemory inspect_memory(const c10::OperatorHandle& op, c10::DeviceType type);

/// The same for an operator that is being called, kept as long as the process lives. Null: not an operator of the
/// dispatcher.
const OperatorMemory* memory_of(const at::RecordFunction& call, c10::DeviceType type);

}  // namespace hortator::machine
