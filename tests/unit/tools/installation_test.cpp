#include <hortator/error.hpp>

#include "support/catch.hpp"
#include "tools/test/checks.hpp"

using namespace hortator;
using namespace hortator::tools::installation;

TEST_CASE("a check that throws has failed with its message, and the next ones run") {
  const auto world = mpi::Communicator::world();
  const auto good = run_check(world, {"good", [] { return std::string("fine"); }});
  CHECK(good.has_passed);
  CHECK(good.details == "fine");
  const auto bad = run_check(world, {"bad", []() -> std::string { throw Error({.what = "wrong sums"}); }});
  CHECK(!bad.has_passed);
  CHECK_THAT(bad.details, ContainsSubstring("wrong sums"));
}

TEST_CASE("the table has one line for each check, and the number that passed") {
  CHECK(table({{"ranks", true, 0.5, "2 ranks"}, {"checkpoint", false, 12.25, "no room"}}) ==
        "passed  ranks          0.50 s  2 ranks\n"
        "FAILED  checkpoint    12.25 s  no room\n"
        "1 of 2 checks passed\n");
}

TEST_CASE("require_on_all_ranks throws the problem of one rank") {
  const auto world = mpi::Communicator::world();
  CHECK_NOTHROW(require_on_all_ranks(world, true, "x"));
  CHECK_THROWS_WITH(require_on_all_ranks(world, false, "the sums differ"), ContainsSubstring("the sums differ"));
}
