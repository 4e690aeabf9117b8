#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace hortator::machine {

/// So many bytes of page-locked memory of the host, and not more: LibTorch's own allocator rounds up to the next power
/// of two, which is for small pieces that come and go. Taking it and giving it back takes its time, and may wait for
/// the device. Throws where the system gives no more, or in a build without CUDA.
std::shared_ptr<void> page_locked(std::size_t bytes);

/// From now on `act` is called where memory of a CUDA device has run out for good, by the thread that has asked for it,
/// with the bytes that it asked for and before what then throws: whatever it was doing. One act a process; an empty
/// one ends it. Does nothing in a build without CUDA.
void on_out_of_memory(std::function<void(std::uint64_t asked_bytes)> act);

}  // namespace hortator::machine
