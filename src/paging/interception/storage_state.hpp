#pragma once

#include <c10/core/Storage.h>

#include <cstddef>
#include <string>

namespace hortator::paging {

/// LibTorch 2.15 can forbid, and allow again, that a storage's pointer is asked for.
template <typename Impl>
concept AccessCanBeForbidden = requires(Impl& impl) {
  impl.clear_data_ptr_access_error_msg_();
};

/// Takes a storage's memory away. Its size stays, so that shapes and views stay right; who asks for its pointer gets an
/// exception with `message`, where that can be had; older LibTorch throws in its own words, and gives a null pointer to
/// those who ask without a type.
void take_memory(const at::Storage& storage, std::string message);

/// Lends it memory that belongs to somebody else.
void lend_memory(const at::Storage& storage, std::byte* memory);

/// Gives it memory of its own; new_memory() is uninitialised.
void own_memory(const at::Storage& storage, at::DataPtr memory) noexcept;
at::DataPtr new_memory(std::size_t bytes, c10::Device device = c10::kCPU);

/// Its bytes, whatever the checks say; null: it has none.
std::byte* memory_of(const at::Storage& storage);

/// Throws Error unless it has: whoever had it paged has ended, and its values with that.
void require_memory(const at::Storage& storage);

}  // namespace hortator::paging
