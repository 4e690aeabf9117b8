#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKey.h>

namespace hortator::paging {

/// The dispatch keys by which operators are intercepted; chosen only here. LibTorch reserves no keys for other
/// libraries, and uses these nowhere itself. check_interception() tests at the first use whether they still work.
constexpr auto paged_key = c10::DispatchKey::TESTING_ONLY_GenericWrapper;   ///< carried by tensors
constexpr auto recording_key = c10::DispatchKey::TESTING_ONLY_GenericMode;  ///< on for a thread
constexpr auto meeting_key = c10::DispatchKey::DeferredInit;  ///< on for a thread; handled after paged_key

/// Views and saved copies of a tensor inherit the key, new tensors do not.
bool carries_key(const at::Tensor& tensor);
void add_key(const at::Tensor& tensor);
void remove_key(const at::Tensor& tensor);

}  // namespace hortator::paging
