#pragma once

#include <string>

#include "core/text/text.hpp"
#include "paging/paged_storages.hpp"

namespace hortator::paging {

/// What is said to those who ask for the pointer of a storage that is not in memory.
inline std::string absence_of(const PagedStorages& storages, int storage) {
  return text::concat(
      "the parameter ", text::quote(storages.speaker(storage).name),
      " is not in memory: it is offloaded or sharded, and comes when an operator reads it. Who needs its "
      "pointer keeps a hortator::Pin while it is used");
}

}  // namespace hortator::paging
