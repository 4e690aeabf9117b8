#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <string>

namespace hortator::paging {

/// The dispatch keys by which operators are intercepted; chosen only here. LibTorch reserves no keys for other
/// libraries, and uses these nowhere itself. check_interception() tests at the first use whether they still work.
constexpr auto paged_key = c10::DispatchKey::TESTING_ONLY_GenericWrapper;   ///< carried by tensors
constexpr auto recording_key = c10::DispatchKey::TESTING_ONLY_GenericMode;  ///< on for a thread
constexpr auto meeting_key = c10::DispatchKey::DeferredInit;  ///< on for a thread; handled after paged_key
constexpr auto divided_key = meeting_key;  ///< carried by tensors that are divided among ranks; operator_handlers.hpp

/// Views and saved copies of a tensor inherit the key, new tensors do not.
bool carries_key(const at::Tensor& tensor);
void add_key(const at::Tensor& tensor);
void remove_key(const at::Tensor& tensor);

/// The same for divided_key. Views inherit it as well.
bool carries_divided_key(const at::Tensor& tensor);
void add_divided_key(const at::Tensor& tensor);
void remove_divided_key(const at::Tensor& tensor);

/// LibTorch 2.15 can forbid access to a storage's pointer, and allow it again.
template <typename Impl>
concept AccessCanBeForbidden = requires(Impl& impl) {
  impl.clear_data_ptr_access_error_msg_();
};

/// Takes a storage's memory away. Its size stays, so that shapes and views stay valid. Taking its pointer throws an
/// exception with `message`; with LibTorch before 2.15 one of LibTorch's own, and a pointer without a type is null.
void take_memory(const at::Storage& storage, std::string message);

/// Lends a storage memory that it does not own.
void lend_memory(const at::Storage& storage, std::byte* memory);

/// Gives a storage memory of its own; new_memory() is uninitialised.
void own_memory(const at::Storage& storage, at::DataPtr memory) noexcept;
at::DataPtr new_memory(std::size_t bytes, c10::Device device = c10::kCPU);

/// A storage's bytes, without checks; null if it has none.
std::byte* memory_of(const at::Storage& storage);

/// Throws Error if a storage has no memory: its provider has ended, and its values are lost.
void require_memory(const at::Storage& storage);

}  // namespace hortator::paging
