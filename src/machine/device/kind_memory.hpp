#pragma once

#include <cstddef>
#include <memory>
#include <string>

/// What each kind of accelerator defines for memory.hpp.
namespace hortator::machine {

/// Exactly `bytes` of page-locked host memory, which the kind's driver has allocated and releases. Null, with the
/// driver's reason, if there is none. The calling thread has a device that this process uses, also when it is released.
std::shared_ptr<void> lock_pages(std::size_t bytes, std::string& reason);

/// Lets LibTorch's allocator call report_out_of_memory(). Called once.
void observe_out_of_memory();

}  // namespace hortator::machine
