#pragma once

#include <cstddef>

namespace hortator::machine {

/// memcpy for much that is not read soon: past the cache where the processor can, which saves reading the target first.
void stream_copy(void* to, const void* from, std::size_t bytes);

}  // namespace hortator::machine
