#include "paging/cast_history.hpp"

#include "support/catch.hpp"

namespace hortator::paging {

TEST_CASE("Whole values are expected until an operator has cast the page", "[cast_history]") {
  CastHistory history;
  CHECK(!history.expected());
  history.note_use(at::kBFloat16);
  CHECK(history.expected() == at::kBFloat16);
  history.note_use(at::kHalf);
  CHECK(history.expected() == at::kHalf);
}

TEST_CASE("After a use of the whole values they are expected for some fetches", "[cast_history]") {
  CastHistory history;
  history.note_use(at::kBFloat16);
  history.note_use({});
  for (int fetch = 0; fetch < CastHistory::patience; ++fetch) {
    history.note_fetch();
    history.note_use(at::kBFloat16);
    CHECK(!history.expected());
  }
  history.note_fetch();
  CHECK(history.expected() == at::kBFloat16);
}

}  // namespace hortator::paging
