#include "parallel/context/sequence_layout.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <vector>

#include "support/catch.hpp"

using namespace hortator;
using parallel::SequenceLayout;

TEST_CASE("every token belongs to one rank, and all ranks together list the sequence in its order") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (std::int64_t length = 2 * ranks; length <= 6 * ranks + 5; ++length) {
      const SequenceLayout layout(length, ranks);
      std::vector<int> owners(static_cast<std::size_t>(length), 0);
      std::int64_t total = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        std::int64_t last = -1;
        for (const auto& range : layout.ranges(rank)) {
          CHECK(range.begin > last);
          last = range.end - 1;
          for (auto token = range.begin; token < range.end; ++token) ++owners[static_cast<std::size_t>(token)];
        }
        total += layout.size(rank);
        CHECK(layout.sizes()[static_cast<std::size_t>(rank)] == layout.size(rank));
      }
      CHECK(std::ranges::all_of(owners, [](int count) { return count == 1; }));
      CHECK(total == length);
      std::int64_t next = 0;
      for (const auto& move : layout.moves()) {
        CHECK(move.in_sequence.begin == next);
        next = move.in_sequence.end;
      }
      CHECK(next == length);
    }
  }
}

TEST_CASE("under a causal mask all ranks see equally many keys, where chunks are equal") {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    const SequenceLayout layout(2 * ranks * 5, ranks);
    std::vector<std::int64_t> keys;
    for (int rank = 0; rank < ranks; ++rank) {
      std::int64_t seen = 0;
      for (const auto& range : layout.ranges(rank)) {
        for (auto query = range.begin; query < range.end; ++query) seen += query + 1;
      }
      keys.push_back(seen);
    }
    CHECK(std::ranges::all_of(keys, [&](std::int64_t seen) { return seen == keys.front(); }));
  }
}

TEST_CASE("a sequence with fewer tokens than chunks is refused") {
  CHECK_NOTHROW(SequenceLayout(1, 1));
  CHECK_THROWS_WITH(SequenceLayout(7, 4), ContainsSubstring("at least 8 tokens"));
}
