#pragma once

#include <cstddef>

#include "interception/claims.hpp"

namespace hortator::paging {

/// A provider of storages that were made without memory: a storage gets its values once, when they are needed, and is
/// an ordinary one from then on.
class DeferredProvider : public interception::StorageProvider {
 public:
  void leave(int /*number*/) noexcept override {}
};

/// What a program reads that takes the pointer of such a storage.
inline constexpr const char* not_yet =
    "A tensor has no values yet: it was made under deferred construction, and gets them when an operator reads it. To "
    "use its pointer, keep a hortator::Pin meanwhile";

/// Smaller storages keep their memory: programs write to such tensors by pointers.
inline constexpr std::size_t small_bytes = std::size_t{1} << 20;

}  // namespace hortator::paging
