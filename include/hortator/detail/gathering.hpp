#pragma once

#include <cstdint>
#include <optional>

namespace hortator::detail {

/// How values of several ranks are joined: which rows count, and which ranks get them.
struct Gathering {
  std::optional<int> ranks = {};           ///< only the first this many of them take part; by default all
  std::optional<std::int64_t> mine = {};   ///< how many of this rank's first rows count; by default all
  std::optional<std::int64_t> first = {};  ///< how many of the joined rows are kept; by default all
  bool sizes_differ = false;               ///< between ranks, along dimension 0
  bool to_main = false;                    ///< only the main process gets the result
};

}  // namespace hortator::detail
