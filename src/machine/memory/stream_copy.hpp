#pragma once

#include <cstddef>

namespace hortator::machine {

/// memcpy for large data that is not read soon: bypasses the cache where the processor can, which avoids reading the
/// target first.
void stream_copy(void* to, const void* from, std::size_t bytes);

}  // namespace hortator::machine
