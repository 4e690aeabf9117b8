#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKey.h>

/// The dispatch keys by which operators are intercepted; chosen only here. LibTorch reserves no keys for other
/// libraries, and uses these nowhere in its own operators. Each user tests at its first use whether its key still
/// works.
namespace hortator::interception {

// In the order in which an operator meets them. It meets a key that is on for its thread, or that one of its tensors
// carries.

/// On for a thread that draws from a generator of its own. LibTorch gives this key a fallback that does nothing, and no
/// operator a kernel for it; only Python's export uses it.
constexpr auto drawing_key = c10::DispatchKey::PreDispatch;
/// On for threads in which ThreadOperators (thread_operators.hpp) live.
constexpr auto recording_key = c10::DispatchKey::TESTING_ONLY_GenericMode;
/// Carried by tensors whose memory is claimed (claimed_operators.hpp), or to which operators are attached.
constexpr auto paged_key = c10::DispatchKey::TESTING_ONLY_GenericWrapper;
/// On for a thread whose operators may find operands on several devices (operator_handlers.hpp).
constexpr auto meeting_key = c10::DispatchKey::DeferredInit;
/// Carried by tensors that are divided among ranks (operator_handlers.hpp).
constexpr auto divided_key = meeting_key;
/// On for a thread that computes shapes only. Below autograd and autocast, above the back ends. LibTorch keeps it free
/// for fake tensors, which Python has instead.
constexpr auto shapes_key = c10::DispatchKey::Fake;

/// Whether the tensor carries paged_key. Views and saved copies of a tensor inherit it, new tensors do not.
bool carries_key(const at::Tensor& tensor);
void add_key(const at::Tensor& tensor);
void remove_key(const at::Tensor& tensor);

/// The same for divided_key. Views inherit it as well.
bool carries_divided_key(const at::Tensor& tensor);
void add_divided_key(const at::Tensor& tensor);
void remove_divided_key(const at::Tensor& tensor);

}  // namespace hortator::interception
