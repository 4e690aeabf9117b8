#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "interception/registration.hpp"

namespace hortator::interception {

// LibTorch has no further key to spare, so that two rooms share the one of meeting_key and divided_key
// (dispatch_keys.hpp): each sets its own handler once.

/// The values of a tensor that carries divided_key, whole and without history. @collective over its ranks
using WholeValues = at::Tensor (*)(const at::Tensor&);

/// For operators with an argument that carries divided_key, whatever else the thread does. The first call for either
/// kind of handler installs the key's fallback, and throws Error if another library uses the key.
void handle_divided_tensors(OperatorHandler handler, WholeValues whole);

/// For other operators of threads on which meeting_key is on.
void handle_meetings(OperatorHandler handler);

/// Whether a tensor in `value`, or in a list in it, carries divided_key.
bool has_divided_tensor(const c10::IValue& value);

/// The tensor, or its whole values if it is divided among ranks: for rooms that do not know how. @collective if it is
at::Tensor whole_values(const at::Tensor& tensor);

}  // namespace hortator::interception
