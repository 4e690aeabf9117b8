#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hortator::machine {

/// What an operator does with the memory of its tensors, by its schema and its kernels.
struct OperatorMemory {
  std::string name = {};
  std::vector<char> writes = {};              ///< whether an argument is written, by the schema
  std::vector<char> writes_in_training = {};  ///< the same where the schema does not say it: running statistics
  std::optional<std::size_t> training = {};   ///< the argument that says whether this is training; none: it is
  std::vector<char> is_new = {};              ///< whether a result differs from all arguments
  bool is_copy = false;                       ///< between devices as well
  bool only_allocates = false;
  bool keeps_for_stream = false;  ///< aten::record_stream
  bool waits = false;             ///< the host waits for the result
  bool waits_for_masks = false;   ///< it waits if an argument is a mask, which selects by data
  /// It reads and writes. Otherwise it only looks at shapes, or consists of operators that are seen themselves.
  bool touches_device = false;
  bool touches_host = false;

  /// Whether a call with these arguments certainly writes the argument.
  bool is_written(std::size_t argument, c10::ArrayRef<const c10::IValue> arguments) const;
};

OperatorMemory inspect_memory(const c10::OperatorHandle& op, c10::DeviceType type);

/// The same for an operator that is being called, kept as long as the process lives. Null: not an operator of the
/// dispatcher.
const OperatorMemory* memory_of(const at::RecordFunction& call, c10::DeviceType type);

}  // namespace hortator::machine
