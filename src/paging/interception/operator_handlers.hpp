#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace hortator::paging {

/// Runs an operator that was intercepted by the key of meeting_key and divided_key (storage_state.hpp). LibTorch has no
/// further key to spare, so that two rooms share this one: each sets its own handler once.
using OperatorHandler = void (*)(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*);

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

}  // namespace hortator::paging
