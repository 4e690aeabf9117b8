#include "comm/decorators/call_table.hpp"

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("a call table lists the minority first, with its ranks") {
  const auto table = comm::tabulate({"a", "b", "a", "a", "c", "a"});
  CHECK(table.odd_rank == 4);
  CHECK(table.lines == "rank 4: c; rank 1: b; ranks 0,2-3,5: a");
}

TEST_CASE("of two equal groups the one without rank 0 is the odd one") {
  const auto table = comm::tabulate({"a", "b"});
  CHECK(table.odd_rank == 1);
  CHECK(table.lines == "rank 1: b; rank 0: a");
}
