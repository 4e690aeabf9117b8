#pragma once

#include <string>

#include "core/text/text.hpp"
#include "paging/paged_storages.hpp"

namespace hortator::paging {

/// The error when the pointer of a storage that is not in memory is taken.
inline std::string absence_of(const PagedStorages& storages, int storage) {
  return text::concat("The parameter ", text::quote(storages.representative(storage).name),
                      " is not in memory: it is offloaded or sharded, and is fetched when an operator reads it. To use "
                      "its pointer, keep "
                      "a hortator::Pin meanwhile");
}

}  // namespace hortator::paging
