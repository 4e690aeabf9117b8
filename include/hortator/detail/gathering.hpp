#pragma once

#include <cstdint>
#include <optional>

namespace hortator::detail {

/// How values of several ranks are joined: which of them count, and who gets them.
struct Gathering {
  std::optional<int> ranks = {};           ///< only so many, the first ones; by default all
  std::optional<std::int64_t> mine = {};   ///< of this rank's rows so many count; by default all
  std::optional<std::int64_t> first = {};  ///< of all rows together the first ones
  bool sizes_differ = false;               ///< between ranks, along dimension 0
  bool to_main = false;
};

}  // namespace hortator::detail
