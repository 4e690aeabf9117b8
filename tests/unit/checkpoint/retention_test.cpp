#include "checkpoint/retention.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <numeric>

#include "support/catch.hpp"

using namespace hortator;
using checkpoint::surplus;
using Numbers = std::vector<std::int64_t>;

TEST_CASE("the newest stay, whatever order they are found in") {
  CHECK(surplus({4, 2, 3, 1}, {.total_limit = 2}) == Numbers{1, 2});
  CHECK(surplus({10, 9, 2}, {.total_limit = 1}) == Numbers{2, 9});
  CHECK(surplus({1, 2}, {.total_limit = 2}).empty());
  CHECK(surplus({}, {.total_limit = 1}).empty());
  CHECK(surplus({1, 2, 3}, {}).empty());
  CHECK(surplus({1, 2, 3}, {.keep_every = 2}).empty());
}

TEST_CASE("with any limits: never the newest, never one that is kept, and as many as the limit says are left") {
  for (std::int64_t count = 0; count <= 12; ++count) {
    Numbers all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 3);
    for (std::int64_t limit = 1; limit <= 5; ++limit) {
      for (std::int64_t every = 1; every <= 5; ++every) {
        INFO(count << " with limit " << limit << ", every " << every);
        const auto gone = surplus(all, {.total_limit = limit, .keep_every = every});
        const auto is_kept = [&](std::int64_t n) { return n % every == 0; };
        CHECK(std::none_of(gone.begin(), gone.end(), is_kept));
        const auto counted = count - std::count_if(all.begin(), all.end(), is_kept);
        CHECK(static_cast<std::int64_t>(gone.size()) == std::max<std::int64_t>(0, counted - limit));
        CHECK(std::is_sorted(gone.begin(), gone.end()));
      }
    }
  }
}

TEST_CASE("limits below one are refused") {
  CHECK_NOTHROW(checkpoint::check({.total_limit = 1, .keep_every = 1}));
  CHECK_THROWS_WITH(checkpoint::check({.total_limit = 0}), ContainsSubstring("total_limit is 0"));
  CHECK_THROWS_WITH(checkpoint::check({.keep_every = -2}), ContainsSubstring("keep_every is -2"));
}
