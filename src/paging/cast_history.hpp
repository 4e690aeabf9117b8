#pragma once

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <optional>

namespace hortator::paging {

/// Predicts from a page's uses whether the next ones cast it to a 16-bit type. Then it may be fetched in that type: a
/// prediction that is wrong costs a second fetch. Pure.
class CastHistory {
 public:
  /// After a use that needs the whole values, this many fetches are of whole values. A page that has such a use in each
  /// pass is thus hardly ever fetched twice.
  static constexpr int patience = 8;

  void note_fetch() { fetches_since_whole_ = std::min(fetches_since_whole_ + 1, patience + 1); }
  /// An operator uses the page, and casts it to `cast`; nothing: it needs the whole values.
  void note_use(std::optional<at::ScalarType> cast) {
    if (cast)
      cast_ = cast;
    else
      fetches_since_whole_ = 0;
  }
  /// The type that is enough for the next uses; nothing: the whole values.
  std::optional<at::ScalarType> expected() const { return fetches_since_whole_ > patience ? cast_ : std::nullopt; }

 private:
  std::optional<at::ScalarType> cast_ = {};  ///< by the last use that has cast the page
  int fetches_since_whole_ = patience + 1;
};

}  // namespace hortator::paging
