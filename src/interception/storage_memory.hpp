#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <string>

/// The memory of a storage, which may be taken away while no operator needs it.
namespace hortator::interception {

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

}  // namespace hortator::interception
